"""The cost of metrics and spans: a handler that does nothing, with and without telemetry.

    python benchmarks/telemetry.py [--format json]

CPU time for each call of ``process_events`` and for each event, beyond that of the bare
handler: without an SDK, with its metrics, and with its spans as well, whose events carry the
publisher's trace context (one for all, and one for each).
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, cast

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from benchmarks._rows import Row, options, print_rows
from eventproc import ConsumerGroup, PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.statistics import ProcessorStatistics
from eventproc.telemetry import Instrumentation, Telemetry

SECONDS: Final = 0.3
ROUNDS: Final = 5
BATCHES: Final = (1, 10, 300)
NO_CONTEXT: Final = cast("PartitionContext", None)


class Idle(PartitionHandler):
    """Does nothing."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Return."""


def no_statistics() -> ProcessorStatistics:
    raise NotImplementedError


def instrumented_by(telemetry: Telemetry) -> PartitionHandler:
    group = ConsumerGroup(fully_qualified_namespace="host", eventhub_name="hub")
    return Instrumentation(telemetry, group, no_statistics).handler(Idle(), "0")


def events_of(count: int, parent: Callable[[int], str]) -> Sequence[ReceivedEvent]:
    return [
        ReceivedEvent(
            body=b"",
            sequence_number=number,
            offset=str(number),
            enqueued_time=datetime.now(UTC),
            properties={"traceparent": parent(number)},
        )
        for number in range(count)
    ]


async def seconds_per_call(
    handler: PartitionHandler, events: Sequence[ReceivedEvent], seconds: float
) -> float:
    count = 0
    begun = time.process_time()
    while (spent := time.process_time() - begun) < seconds:
        for _ in range(100):
            await handler.process_events(NO_CONTEXT, events)
        count += 100
    return spent / count


def main() -> None:
    given = options(__doc__).parse_args()
    seconds, rounds = (0.01, 1) if given.quick else (SECONDS, ROUNDS)

    def one(_: int) -> str:
        return f"00-{1:032x}-{1:016x}-01"

    def each(number: int) -> str:
        return f"00-{number + 1:032x}-{number + 1:016x}-01"

    candidates: dict[str, tuple[PartitionHandler, Callable[[int], str]]] = {
        "no SDK": (instrumented_by(Telemetry()), one),
        "metrics": (
            instrumented_by(Telemetry(meter_provider=MeterProvider([InMemoryMetricReader()]))),
            one,
        ),
        "and spans": (
            instrumented_by(
                Telemetry(
                    meter_provider=MeterProvider([InMemoryMetricReader()]),
                    tracer_provider=TracerProvider(),
                )
            ),
            one,
        ),
    }
    candidates["and a link each"] = (candidates["and spans"][0], each)
    rows: list[Row] = []
    for name, (handler, parent) in candidates.items():
        for size in BATCHES:
            events = events_of(size, parent)
            extra = min(
                asyncio.run(seconds_per_call(handler, events, seconds))
                - asyncio.run(seconds_per_call(Idle(), events, seconds))
                for _ in range(rounds)
            )
            rows.append(
                {
                    "telemetry": name,
                    "events_per_call": size,
                    "cpu_us_per_call": round(extra * 1e6, 2),
                    "cpu_us_per_event": round(extra * 1e6 / size, 3),
                }
            )
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()
