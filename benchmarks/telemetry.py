"""What metrics and spans cost: a handler that does nothing, told of and not told of.

    python benchmarks/telemetry.py

Processor time for each call of ``process_events`` and for each event, beyond that of the bare
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

from eventproc import ConsumerGroup, PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.statistics import ProcessorStatistics
from eventproc.telemetry import Telemetry, Watch

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


def nobody_asks() -> ProcessorStatistics:
    raise NotImplementedError


def told_by(telemetry: Telemetry) -> PartitionHandler:
    group = ConsumerGroup(fully_qualified_namespace="host", eventhub_name="hub")
    return Watch(telemetry, group, nobody_asks).handler(Idle(), "0")


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


async def seconds_per_call(handler: PartitionHandler, events: Sequence[ReceivedEvent]) -> float:
    count = 0
    begun = time.process_time()
    while (spent := time.process_time() - begun) < SECONDS:
        for _ in range(100):
            await handler.process_events(NO_CONTEXT, events)
        count += 100
    return spent / count


def main() -> None:
    def one(_: int) -> str:
        return f"00-{1:032x}-{1:016x}-01"

    def each(number: int) -> str:
        return f"00-{number + 1:032x}-{number + 1:016x}-01"

    candidates: dict[str, tuple[PartitionHandler, Callable[[int], str]]] = {
        "no SDK": (told_by(Telemetry()), one),
        "metrics": (
            told_by(Telemetry(meter_provider=MeterProvider([InMemoryMetricReader()]))),
            one,
        ),
        "and spans": (
            told_by(
                Telemetry(
                    meter_provider=MeterProvider([InMemoryMetricReader()]),
                    tracer_provider=TracerProvider(),
                )
            ),
            one,
        ),
    }
    candidates["and a link each"] = (candidates["and spans"][0], each)
    print(f"{'':16}{'events a call':>14}{'us a call':>11}{'us an event':>13}")
    for name, (handler, parent) in candidates.items():
        for size in BATCHES:
            events = events_of(size, parent)
            extra = min(
                asyncio.run(seconds_per_call(handler, events))
                - asyncio.run(seconds_per_call(Idle(), events))
                for _ in range(ROUNDS)
            )
            print(f"{name:16}{size:14}{extra * 1e6:11.2f}{extra * 1e6 / size:13.3f}")


if __name__ == "__main__":
    main()
