"""The hub in memory: its numbers and positions, and the faults that tests can cause.

The contract has what it shares with every source.
"""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.errors import (
    ConfigurationError,
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.models import EventPosition
from eventproc.ports import PartitionReceiver
from eventproc.sources.memory import MemoryEventSource, MemoryHub

SOON = timedelta(seconds=5)
NOW = timedelta(0)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that moves by a second at each reading."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def filled(sizes: list[int], *, retained_max: int | None = None) -> MemoryHub:
    """A hub of one partition, with events of these sizes."""
    hub = MemoryHub(1, clock=Clock(), retained_max=retained_max)
    for size in sizes:
        hub.publish(b"x" * size)
    return hub


async def read_from(hub: MemoryHub, position: EventPosition) -> list[int]:
    """The sequence numbers of all events that a new receiver gets."""
    async with MemoryEventSource(hub) as source:
        receiver = await source.open_receiver("g", "0", position)
        return await drain(receiver)


async def drain(receiver: PartitionReceiver, events_max: int = 7) -> list[int]:
    """The sequence numbers of all events that can be received now."""
    numbers: list[int] = []
    while events := await receiver.receive(events_max=events_max, wait_max=NOW):
        numbers += [event.sequence_number for event in events]
    return numbers


bodies = st.lists(st.integers(0, 50), min_size=1, max_size=30)


@given(bodies)
def test_offsets_rise_and_differ_from_sequence_numbers(sizes):
    """So code that confuses the two fails at the first event."""
    events = filled(sizes).events("0")
    offsets = [int(event.offset) for event in events]

    assert offsets == sorted(set(offsets))
    assert all(
        offset != event.sequence_number for offset, event in zip(offsets, events, strict=True)
    )


@given(bodies, st.integers(1, 10), st.data())
def test_reading_from_a_deleted_position_begins_at_the_oldest_event(sizes, retained_max, data):
    """Retention deletes the oldest events, and the others keep their numbers."""
    hub = filled(sizes, retained_max=retained_max)
    begin = data.draw(st.integers(0, len(sizes) - 1))
    position = EventPosition.from_sequence_number(begin, is_inclusive=True)
    first = max(begin, len(sizes) - retained_max)

    assert asyncio.run(read_from(hub, position)) == list(range(first, len(sizes)))
    assert hub.partition_properties("0").beginning_sequence_number == max(
        0, len(sizes) - retained_max
    )


@given(bodies, st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 40))
def test_a_reader_overtaken_by_retention_skips_deleted_events(sizes, batch_sizes, trim_at):
    """It repeats none."""

    async def run() -> None:
        hub = filled(sizes)
        async with MemoryEventSource(hub) as source:
            receiver = await source.open_receiver("g", "0", EventPosition.earliest())
            numbers: list[int] = []
            for batch_size in batch_sizes:
                events = await receiver.receive(events_max=batch_size, wait_max=NOW)
                numbers += [event.sequence_number for event in events]
                hub.trim("0", before=trim_at)
            numbers += await drain(receiver)

        assert numbers == sorted(set(numbers))
        assert set(range(trim_at, len(sizes))) <= set(numbers)

    asyncio.run(run())


@given(st.lists(st.text(max_size=5), min_size=1, max_size=20), st.integers(1, 5))
def test_events_of_one_key_are_in_one_partition_in_order(keys, partition_count):
    """As long as the hub does not grow."""
    hub = MemoryHub(partition_count)
    partitions_by_key: dict[str, set[str]] = {}
    for number, key in enumerate(keys):
        partition_id, _ = hub.publish(b"%d" % number, partition_key=key)
        partitions_by_key.setdefault(key, set()).add(partition_id)

    assert all(len(partitions) == 1 for partitions in partitions_by_key.values())
    for partition_id in hub.partition_ids():
        numbers = [int(event.body) for event in hub.events(partition_id)]
        assert numbers == sorted(numbers)


def test_events_without_a_key_are_distributed_evenly():
    """Round robin."""
    hub = MemoryHub(3)
    for _ in range(6):
        hub.publish(b"")

    assert [len(hub.events(partition_id)) for partition_id in hub.partition_ids()] == [2, 2, 2]


async def test_an_outage_breaks_receivers_and_refuses_requests():
    """After it a new receiver continues."""
    hub = MemoryHub(1)
    async with MemoryEventSource(hub) as source:
        receiver = await source.open_receiver("g", "0", EventPosition.earliest())
        hub.publish(b"")
        hub.begin_outage()
        for attempt in (
            receiver.receive(events_max=1, wait_max=SOON),
            source.partition_ids(),
            source.check_consumer_group("g"),
            source.open_receiver("g", "0", EventPosition.earliest()),
        ):
            with pytest.raises(SourceUnavailableError):
                await attempt
        hub.end_outage()
        with pytest.raises(SourceUnavailableError):
            await receiver.receive(events_max=1, wait_max=SOON)
        numbers = await drain(await source.open_receiver("g", "0", EventPosition.earliest()))

    assert numbers == [0]


async def test_a_broken_link_raises_in_a_waiting_receiver():
    """The error that the test gave. Other partitions are not affected."""
    hub = MemoryHub(2)
    async with MemoryEventSource(hub) as source:
        broken = await source.open_receiver("g", "0", EventPosition.earliest())
        whole = await source.open_receiver("g", "1", EventPosition.earliest())
        waiting = asyncio.create_task(broken.receive(events_max=1, wait_max=SOON))
        await asyncio.sleep(0.01)
        hub.break_links("0", error=SourceUnavailableError("pulled the plug"))
        with pytest.raises(SourceUnavailableError, match="pulled the plug"):
            await waiting
        hub.publish(b"", partition_id="1")
        numbers = await drain(whole)

    assert numbers == [0]


async def test_a_receiver_may_be_displaced_without_another_receiver():
    """Displacement does not prove a loss of ownership, which processors must verify."""
    hub = MemoryHub(1)
    async with MemoryEventSource(hub) as source:
        receiver = await source.open_receiver("G", "0", EventPosition.earliest())
        hub.displace("0", group="g")
        with pytest.raises(ReceiverDisplacedError):
            await receiver.receive(events_max=1, wait_max=SOON)


async def test_opening_can_be_refused_until_it_is_allowed():
    """With the error that the test gave."""
    hub = MemoryHub(1)
    async with MemoryEventSource(hub) as source:
        hub.refuse_opening("0", SourceRejectedError("never"))
        with pytest.raises(SourceRejectedError, match="never"):
            await source.open_receiver("g", "0", EventPosition.earliest())
        hub.allow_opening("0")
        receiver = await source.open_receiver("g", "0", EventPosition.earliest())

        assert await drain(receiver) == []


async def test_a_stalled_partition_delivers_nothing_until_it_resumes():
    """It raises no error. A receiver opened meanwhile stalls, too."""
    hub = MemoryHub(1)
    async with MemoryEventSource(hub) as source:
        hub.stall("0")
        hub.publish(b"")
        receiver = await source.open_receiver("g", "0", EventPosition.earliest())
        stalled = await drain(receiver)
        waiting = asyncio.create_task(receiver.receive(events_max=1, wait_max=SOON))
        await asyncio.sleep(0.01)
        hub.resume("0")
        resumed = await waiting

    assert stalled == []
    assert [event.sequence_number for event in resumed] == [0]


async def test_a_receiver_with_events_lets_other_tasks_run():
    """Otherwise one busy partition would block the event loop."""
    hub = filled([1] * 100)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with MemoryEventSource(hub) as source:
        receiver = await source.open_receiver("g", "0", EventPosition.earliest())
        task = asyncio.create_task(other())
        await drain(receiver, events_max=1)
        task.cancel()

    assert turns >= 100


async def test_a_request_takes_the_latency_of_the_hub():
    """So that a simulation can have a slow network."""
    hub = MemoryHub(1)
    hub.latency = timedelta(milliseconds=50)
    loop = asyncio.get_running_loop()
    async with MemoryEventSource(hub) as source:
        began_s = loop.time()
        await source.partition_ids()

    assert loop.time() - began_s >= 0.05


async def test_a_request_to_a_source_that_is_not_open_raises():
    """As on a real hub."""
    with pytest.raises(RuntimeError, match="not open"):
        await MemoryEventSource(MemoryHub(1)).partition_ids()


def test_a_hub_needs_a_partition_and_cannot_shrink():
    """Both raise an error."""
    with pytest.raises(ConfigurationError, match="partition_count"):
        MemoryHub(0)
    with pytest.raises(ValueError, match="shrink"):
        MemoryHub(2).grow(1)
