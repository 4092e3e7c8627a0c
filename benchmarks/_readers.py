"""Readers of a hub: eventproc's, Azure's, and one that does not decode events.

Each receives from the oldest event on, until all events are counted, and reads body, sequence
number and offset of every event.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from azure.eventhub import EventData, EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioConsumerClient

from benchmarks._hub import SENT_AT
from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig, PartitionContext, PartitionHandler
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource, ReceivePath
from eventproc.sources.eventhubs._direct_path.azure_internals import PartitionLink
from eventproc.sources.eventhubs._options import PREFETCH

COUNTED_FROM: Final = 0.1
"""CPU time is measured from this part of the backlog on, without the cost of opening."""


@dataclass
class ReadCounters:
    """What a reader received. Threads may share it, as they only append."""

    wanted: int
    partition_count: int
    batch: int
    begun: float = field(default_factory=time.monotonic)
    count: int = 0
    first: float = 0.0
    counted_from: tuple[int, float, float] | None = None
    """Events, clock and CPU time when a tenth was received."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, bodies: Sequence[bytes], count: int | None = None) -> bool:
        """Count a batch, of this many events without their bodies; return whether all are read."""
        now = time.monotonic()
        with self.lock:
            self.first = self.first or now
            self.count += len(bodies) if count is None else count
            if self.counted_from is None and self.count >= self.wanted * COUNTED_FROM:
                self.counted_from = self.count, now, time.process_time()
            return self.count >= self.wanted

    def times(self) -> dict[str, float]:
        """Return the seconds to the first event."""
        return {"first_event_s": round(self.first - self.begun, 3)}


@dataclass
class Ages(ReadCounters):
    """How long paced events took until their handler."""

    ages_s: list[float] = field(default_factory=list)

    def add(self, bodies: Sequence[bytes], count: int | None = None) -> bool:
        """Count a batch, and note the ages of its events."""
        is_last = super().add(bodies, count)
        if self.counted_from is not None:
            now = time.monotonic()
            self.ages_s += [now - SENT_AT.unpack_from(body)[0] for body in bodies]
        return is_last

    def times(self) -> dict[str, float]:
        """Return the time within which half of the events, and 99 %, were with the handler."""
        ages_s = sorted(self.ages_s)
        shares = {"p50_ms": 0.5, "p99_ms": 0.99}
        return {n: round(1e3 * ages_s[int(share * len(ages_s))], 1) for n, share in shares.items()}


def bodies_of(events: Sequence[ReceivedEvent]) -> list[bytes]:
    """Read the fields that nearly every handler reads; return the bodies."""
    return [event.body for event in events if event.sequence_number >= 0 and event.offset]


def bodies_of_azure(events: Sequence[EventData]) -> list[bytes]:
    """Do the same with events of Azure's client."""
    return [
        b"".join(event.body)  # type: ignore[arg-type]
        for event in events
        if event.sequence_number is not None and event.offset
    ]


async def read_with_eventproc(
    conn_str: str, counters: ReadCounters, *, path: ReceivePath = ReceivePath.DIRECT
) -> None:
    """Read with eventproc, with one task for each partition, as a processor's pumps do."""
    done = asyncio.Event()

    async def pump(source: EventHubSource, partition_id: str) -> None:
        receiver = await source.open_receiver("$Default", partition_id, EventPosition.earliest())
        while not done.is_set():
            events = await receiver.receive(
                events_max=counters.batch, wait_max=timedelta(seconds=1)
            )
            if events and counters.add(bodies_of(events)):
                done.set()

    prefetch = max(PREFETCH, counters.batch)
    options = EventHubOptions(prefetch=prefetch, receive_path=path)
    async with EventHubSource.from_connection_string(conn_str, options=options) as source:
        pumps = [
            asyncio.create_task(pump(source, str(number)))
            for number in range(counters.partition_count)
        ]
        await done.wait()
        for task in pumps:
            task.cancel()


class _Counting(PartitionHandler):
    """Counts what it gets."""

    counters: ReadCounters
    done: asyncio.Event

    def count(self, _: PartitionContext, bodies: Sequence[bytes], count: int) -> None:
        if self.counters.add(bodies, count):
            self.done.set()


class _OfEvents(_Counting):
    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        self.count(context, bodies_of(events), len(events))


class _OfEach(_Counting):
    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        self.count(context, bodies_of([event]), 1)


class _OfColumns(_Counting):
    columns = ("body", "sequenceNumber", "offset")

    async def process_columns(self, context: PartitionContext, columns: pa.RecordBatch) -> None:
        pc.sum(pc.binary_length(columns.column("body")))
        pc.min_max(columns.column("sequenceNumber"))
        self.count(context, (), columns.num_rows)


async def read_with_processor(
    conn_str: str, counters: ReadCounters, *, handler: type[_Counting], batch_min: int = 1
) -> None:
    """Read with a whole processor, which keeps its progress in memory."""
    done = asyncio.Event()

    def make() -> _Counting:
        made = handler()
        made.counters, made.done = counters, done
        return made

    async with EventHubSource.from_connection_string(conn_str) as source:
        processor = EventProcessor(
            source=source,
            store=MemoryCheckpointStore(MemoryAccount()),
            handler=make,
            config=EventProcessorConfig(batch_size_max=max(counters.batch, batch_min)),
        )
        async with processor:
            await done.wait()


async def read_bare(conn_str: str, counters: ReadCounters) -> None:
    """Split the received bytes into events without decoding them: the limit of the emulator."""
    done = asyncio.Event()

    async def drain(source: EventHubSource, partition_id: str) -> None:
        client = source._client("$Default")  # noqa: SLF001 - below the library
        link = await PartitionLink.open(
            client,
            "$Default",
            partition_id,
            EventPosition.earliest(),
            owner_level=EventHubOptions().owner_level,
        )
        while not done.is_set():
            if link.credit < 5000:  # noqa: PLR2004
                await link.grant(10_000)
            payloads = link.events_in(await link.listen())
            if payloads and counters.add(payloads):
                done.set()
            await link.attend()

    async with EventHubSource.from_connection_string(conn_str) as source:
        drains = [
            asyncio.create_task(drain(source, str(number)))
            for number in range(counters.partition_count)
        ]
        await done.wait()
        for task in drains:
            task.cancel()


async def read_with_aio(conn_str: str, counters: ReadCounters, *, prefetch: int) -> None:
    """Read all partitions with Azure's aio client."""
    done = asyncio.Event()

    async def on_batch(_: Any, events: list[Any]) -> None:  # noqa: ANN401
        if events and counters.add(bodies_of_azure(events)):
            done.set()

    client = AioConsumerClient.from_connection_string(conn_str, "$Default")
    task = asyncio.create_task(
        client.receive_batch(on_batch, **_settings(counters.batch, prefetch))
    )
    await done.wait()
    task.cancel()


def read_with_sync(
    conn_str: str,
    counters: ReadCounters,
    *,
    socket_timeout_s: float | None = None,
    prefetch: int | None = None,
    is_threaded: bool = False,
) -> None:
    """Read with Azure's sync client: all partitions in one thread, or a thread for each."""
    done = threading.Event()

    def on_batch(_: Any, events: list[Any]) -> None:  # noqa: ANN401
        if events and counters.add(bodies_of_azure(events)):
            done.set()

    settings = _settings(counters.batch, prefetch or counters.batch)
    for number in range(counters.partition_count if is_threaded else 1):
        client = EventHubConsumerClient.from_connection_string(
            conn_str, "$Default", socket_timeout=socket_timeout_s
        )
        threading.Thread(
            target=client.receive_batch,
            args=(on_batch,),
            kwargs=settings | ({"partition_id": str(number)} if is_threaded else {}),
            daemon=True,
        ).start()
    done.wait()


def _settings(batch: int, prefetch: int) -> dict[str, Any]:
    return {
        "max_batch_size": batch,
        "prefetch": prefetch,
        "starting_position": "-1",
        "track_last_enqueued_event_properties": True,
    }


def _in_a_loop(reader: Callable[..., Awaitable[None]], **settings: Any) -> Callable[..., None]:  # noqa: ANN401
    """Return an ordinary function that runs an asynchronous reader."""

    async def run(conn_str: str, counters: ReadCounters) -> None:
        await reader(conn_str, counters, **settings)

    return lambda conn_str, counters: asyncio.run(run(conn_str, counters))


CANDIDATES: Final[dict[str, Callable[..., None]]] = {
    "eventproc": _in_a_loop(read_with_eventproc),
    "eventproc-processor": _in_a_loop(read_with_processor, handler=_OfEvents),
    "eventproc-each": _in_a_loop(read_with_processor, handler=_OfEach),
    "eventproc-columns": _in_a_loop(read_with_processor, handler=_OfColumns, batch_min=10_000),
    "azure-aio": _in_a_loop(read_with_aio, prefetch=300),
    "azure-aio-3000": _in_a_loop(read_with_aio, prefetch=3000),
    "azure-sync": read_with_sync,
    "azure-sync-5ms": lambda conn_str, counters: read_with_sync(
        conn_str, counters, socket_timeout_s=0.005
    ),
    "azure-threads": lambda conn_str, counters: read_with_sync(
        conn_str, counters, socket_timeout_s=0.005, is_threaded=True
    ),
    "eventproc-public": _in_a_loop(read_with_eventproc, path=ReceivePath.PUBLIC),
    "bare": _in_a_loop(read_bare),
}
"""The plain names are defaults; a number is the prefetch, ``5ms`` the socket timeout. The prefetch
of Azure's synchronous client follows the batch, else it would never fill one."""
