"""The hub in memory: its numbering, its positions, and the faults that tests ask of it.

What it has in common with every source is in the contract; here is what is its own.
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
    """A second passes between two looks."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def filled(sizes: list[int], *, retained_max: int | None = None) -> MemoryHub:
    """A hub whose only partition got events of these sizes."""
    hub = MemoryHub(1, clock=Clock(), retained_max=retained_max)
    for size in sizes:
        hub.publish(b"x" * size)
    return hub


async def read_from(hub: MemoryHub, position: EventPosition) -> list[int]:
    """The sequence numbers of everything that a new receiver gets."""
    async with MemoryEventSource(hub) as source:
        receiver = await source.open_receiver("g", "0", position)
        return await drain(receiver)


async def drain(receiver: PartitionReceiver, events_max: int = 7) -> list[int]:
    """The sequence numbers of everything that is there."""
    numbers: list[int] = []
    while events := await receiver.receive(events_max=events_max, wait_max=NOW):
        numbers += [event.sequence_number for event in events]
    return numbers


bodies = st.lists(st.integers(0, 50), min_size=1, max_size=30)


@given(bodies, st.data(), st.booleans())
def test_every_way_to_name_an_event_means_the_same_place(sizes, data, is_inclusive):
    """Sequence number, offset and time of one event begin at the same event."""
    hub = filled(sizes)
    index = data.draw(st.integers(0, len(sizes) - 1))
    event = hub.events("0")[index]
    positions = [
        EventPosition.from_sequence_number(event.sequence_number, is_inclusive=is_inclusive),
        EventPosition.from_offset(event.offset, is_inclusive=is_inclusive),
        EventPosition(enqueued_time=event.enqueued_time, is_inclusive=is_inclusive),
    ]
    expected = list(range(index + (not is_inclusive), len(sizes)))
    for position in positions:
        assert asyncio.run(read_from(hub, position)) == expected


@given(bodies)
def test_offsets_rise_and_are_never_sequence_numbers(sizes):
    """Who takes one for the other is found out at the first event."""
    events = filled(sizes).events("0")
    offsets = [int(event.offset) for event in events]

    assert offsets == sorted(set(offsets))
    assert all(
        offset != event.sequence_number for offset, event in zip(offsets, events, strict=True)
    )


@given(bodies, st.integers(1, 10), st.data())
def test_a_position_that_was_forgotten_means_the_oldest_event(sizes, retained_max, data):
    """Retention drops from the old end, and what is left keeps its numbers."""
    hub = filled(sizes, retained_max=retained_max)
    begin = data.draw(st.integers(0, len(sizes) - 1))
    position = EventPosition.from_sequence_number(begin, is_inclusive=True)
    first = max(begin, len(sizes) - retained_max)

    assert asyncio.run(read_from(hub, position)) == list(range(first, len(sizes)))
    assert hub.partition_properties("0").beginning_sequence_number == max(
        0, len(sizes) - retained_max
    )


@given(bodies, st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 40))
def test_a_reader_overtaken_by_retention_skips_and_never_repeats(sizes, appetites, trim_at):
    """What is forgotten is gone; what is read rises."""

    async def run() -> None:
        hub = filled(sizes)
        async with MemoryEventSource(hub) as source:
            receiver = await source.open_receiver("g", "0", EventPosition.earliest())
            numbers: list[int] = []
            for appetite in appetites:
                events = await receiver.receive(events_max=appetite, wait_max=NOW)
                numbers += [event.sequence_number for event in events]
                hub.trim("0", before=trim_at)
            numbers += await drain(receiver)

        assert numbers == sorted(set(numbers))
        assert set(range(trim_at, len(sizes))) <= set(numbers)

    asyncio.run(run())


@given(st.lists(st.text(max_size=5), min_size=1, max_size=20), st.integers(1, 5))
def test_events_of_one_key_stay_together_and_in_order(keys, partition_count):
    """A key has one partition for as long as the hub does not grow."""
    hub = MemoryHub(partition_count)
    places: dict[str, set[str]] = {}
    for number, key in enumerate(keys):
        partition_id, _ = hub.publish(b"%d" % number, partition_key=key)
        places.setdefault(key, set()).add(partition_id)

    assert all(len(partitions) == 1 for partitions in places.values())
    for partition_id in hub.partition_ids():
        numbers = [int(event.body) for event in hub.events(partition_id)]
        assert numbers == sorted(numbers)


def test_events_without_a_key_go_round():
    """Each partition gets its share."""
    hub = MemoryHub(3)
    for _ in range(6):
        hub.publish(b"")

    assert [len(hub.events(partition_id)) for partition_id in hub.partition_ids()] == [2, 2, 2]


async def test_an_outage_breaks_what_is_open_and_refuses_what_is_asked():
    """And it ends: another receiver goes on where the last one was."""
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


async def test_a_broken_link_wakes_who_waits_on_it():
    """With the error that the test gave."""
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


async def test_a_receiver_can_be_displaced_by_nobody():
    """A stolen link is a hint and no proof; this is how a processor's doubt is tested."""
    hub = MemoryHub(1)
    async with MemoryEventSource(hub) as source:
        receiver = await source.open_receiver("G", "0", EventPosition.earliest())
        hub.displace("0", group="g")
        with pytest.raises(ReceiverDisplacedError):
            await receiver.receive(events_max=1, wait_max=SOON)


async def test_opening_can_be_refused_until_it_is_allowed():
    """For good or for now, as the given error says."""
    hub = MemoryHub(1)
    async with MemoryEventSource(hub) as source:
        hub.refuse_opening("0", SourceRejectedError("never"))
        with pytest.raises(SourceRejectedError, match="never"):
            await source.open_receiver("g", "0", EventPosition.earliest())
        hub.allow_opening("0")
        receiver = await source.open_receiver("g", "0", EventPosition.earliest())

        assert await drain(receiver) == []


async def test_a_stalled_partition_delivers_nothing_until_it_resumes():
    """Without an error: only a watchdog can tell. A receiver opened meanwhile stalls, too."""
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


async def test_a_reader_that_always_finds_something_lets_others_have_their_turn():
    """Else one busy partition would starve the loop."""
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


async def test_a_question_takes_the_hub_s_latency():
    """So that a simulation can make the network slow."""
    hub = MemoryHub(1)
    hub.latency = timedelta(milliseconds=50)
    loop = asyncio.get_running_loop()
    async with MemoryEventSource(hub) as source:
        begun = loop.time()
        await source.partition_ids()

    assert loop.time() - begun >= 0.05


async def test_a_source_must_be_open_to_be_asked():
    """The same mistake is refused on a real hub."""
    with pytest.raises(RuntimeError, match="not open"):
        await MemoryEventSource(MemoryHub(1)).partition_ids()


def test_a_hub_has_partitions_and_never_fewer():
    """Neither none to begin with nor less than before."""
    with pytest.raises(ConfigurationError, match="partition_count"):
        MemoryHub(0)
    with pytest.raises(ValueError, match="shrink"):
        MemoryHub(2).grow(1)


@pytest.mark.parametrize(
    "position",
    [
        EventPosition.from_sequence_number(1),
        EventPosition.from_sequence_number(2, is_inclusive=True),
        EventPosition.from_offset("4097"),
        EventPosition.from_offset("@latest"),
    ],
)
async def test_a_position_beyond_the_end_belongs_to_another_hub(position):
    """Waiting there would be silence for ever."""
    with pytest.raises(SourceRejectedError):
        await read_from(filled([1]), position)
