"""What it costs to decode the bodies of events, beside ``json.loads``.

    python benchmarks/decoding.py
    python benchmarks/decoding.py --quick

The same events are decoded in turn by each candidate, round by round. Figures are CPU time
for an event, medians over the rounds; ``times`` is in relation to ``body_as_json``. The column is
built for batches of 1,000 events. ``process_value`` is the whole way from the call of the handler,
and ``process_event`` the same way without decoding.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec

from benchmarks._rows import Row, options, print_rows
from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.columns._value_column import value_array, value_type
from eventproc.decoders import CloudEventDecoder, JsonDecoder, MsgpackDecoder

EVENTS: Final = 20_000
ROUNDS: Final = 7
NOW: Final = datetime.now(UTC)
BATCH: Final = 1000


class Line(msgspec.Struct):
    """One article."""

    article: str
    count: int
    price: float


class Order(msgspec.Struct):
    """Some 250 bytes of JSON."""

    id: str
    customer: str
    at: datetime
    lines: list[Line]


JSON: Final = JsonDecoder(Order)
MSGPACK: Final = MsgpackDecoder(Order)
CLOUD: Final = CloudEventDecoder(JSON)
COLUMN: Final = value_type(Order)


class Decoding(PartitionHandler[Order]):
    """Gets structs, and does nothing."""

    decode = JSON

    async def process_value(
        self, context: PartitionContext, value: Order, event: ReceivedEvent
    ) -> None:
        """Do nothing."""


class Plain(PartitionHandler):
    """Gets events, and does nothing."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Do nothing."""


class NoContext:
    """As much of a context as a call needs."""

    is_ending = is_interrupted = False

    def begin_event(self, event: ReceivedEvent) -> None:
        """Do nothing."""

    def done(self, event: ReceivedEvent) -> None:
        """Do nothing."""


def events_of(bodies: Sequence[bytes], kind: str | None = None) -> list[ReceivedEvent]:
    return [
        ReceivedEvent(
            body=body, sequence_number=n, offset=str(n), enqueued_time=NOW, content_type=kind
        )
        for n, body in enumerate(bodies)
    ]


def called(handler: PartitionHandler[Any], events: Sequence[ReceivedEvent]) -> None:
    asyncio.run(handler.process_events(cast("PartitionContext", NoContext()), events))


def columns(events: Sequence[ReceivedEvent]) -> None:
    for begin in range(0, len(events), BATCH):
        value_array([JSON.value_of(event) for event in events[begin : begin + BATCH]], COLUMN)


def each(function: Callable[[ReceivedEvent], object]) -> Callable[[Sequence[ReceivedEvent]], None]:
    def run(events: Sequence[ReceivedEvent]) -> None:
        for event in events:
            function(event)

    return run


def main() -> None:
    """Print a row for each candidate."""
    parser = options(__doc__)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if given.quick:
        given.events, given.rounds = 2_000, 3
    orders = [
        Order(
            f"order-{n}",
            f"customer-{n % 97}",
            NOW,
            [Line(f"article-{k}", k, 1.5) for k in range(3)],
        )
        for n in range(given.events)
    ]
    plain = events_of([msgspec.json.encode(order) for order in orders])
    packed = events_of([msgspec.msgpack.encode(order) for order in orders])
    cloud = events_of(
        [
            msgspec.json.encode({"id": order.id, "source": "/s", "type": "t", "data": order})
            for order in orders
        ],
        "application/cloudevents+json",
    )
    candidates: dict[str, tuple[Callable[[Sequence[ReceivedEvent]], None], list[ReceivedEvent]]] = {
        "body_as_json": (each(ReceivedEvent.body_as_json), plain),
        "JsonDecoder()": (each(JsonDecoder().value_of), plain),
        "JsonDecoder(Order)": (each(JSON.value_of), plain),
        "MsgpackDecoder(Order)": (each(MSGPACK.value_of), packed),
        "CloudEventDecoder, in the body": (each(CLOUD.value_of), cloud),
        "the column value": (columns, plain),
        "process_event, not decoded": (lambda events: called(Plain(), events), plain),
        "process_value": (lambda events: called(Decoding(), events), plain),
    }
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(given.rounds):
        for name, (run, events) in candidates.items():
            begun = time.process_time()
            run(events)
            seconds[name].append(time.process_time() - begun)
    cost = {name: statistics.median(s) / given.events * 1e6 for name, s in seconds.items()}
    rows: list[Row] = [
        {
            "candidate": name,
            "body_bytes": len(candidates[name][1][-1].body),
            "us_per_event": round(us, 3),
            "times": round(us / cost["body_as_json"], 2),
        }
        for name, us in cost.items()
    ]
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()
