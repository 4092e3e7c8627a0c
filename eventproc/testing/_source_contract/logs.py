"""Clauses for the source of a log: its events stay, and a position can be chosen.

Relied on by: eventproc/_delivery/start.py, eventproc/_delivery/reader.py
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from eventproc.errors import MissingExtraError
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.testing._clauses import SkippedError, require
from eventproc.testing._source_contract.bench import (
    EARLIEST,
    GROUP,
    OTHER_GROUP,
    SOON,
    SourceBench,
    end_of,
    numbered,
    opened,
    read,
    refused,
    require_bodies,
    take,
)


async def the_same_events_come_if_columns_are_wanted(bench: SourceBench) -> None:
    """After ``read_columns`` come the same events, and their columns have the same values."""
    async with bench.source() as source:
        position = await end_of(source)
        receiver = await source.open_receiver(GROUP, "0", position)
        await bench.publish("0", b"", b"x" * 1000, *numbered(250))
        events = await take(receiver, 252)
    batches: list[Sequence[ReceivedEvent]] = []
    async with opened(bench, position=position) as receiver:
        try:
            from eventproc.columns import COLUMNS, to_columns  # noqa: PLC0415 - of an extra

            receiver.read_columns()
            wanted = to_columns(events, tuple(COLUMNS), "0").to_pylist()
        except MissingExtraError:
            return
        while sum(map(len, batches)) < 252:
            batches.append(await receiver.receive(events_max=100, wait_max=SOON))
            require(1 <= len(batches[-1]) <= 100, "1 to events_max=100 events must come")

    parts = [to_columns(batch, tuple(COLUMNS), "0").to_pylist() for batch in batches]
    require([row for part in parts for row in part] == wanted, "columns must have equal values")
    require([e for batch in batches for e in batch] == events, "events must be equal")


async def latest_begins_after_all_existing_events(bench: SourceBench) -> None:
    """The position ``latest`` begins after every event that exists when the receiver is opened."""
    await bench.publish("0", b"before")
    async with opened(bench, position=EventPosition.latest()) as receiver:
        await bench.publish("0", b"after")
        events = await take(receiver, 1)

    require_bodies(events, [b"after"], "latest was wanted")


async def a_sequence_number_begins_after_or_at_its_event(bench: SourceBench) -> None:
    """A sequence number begins after its event; at its event if the position is inclusive."""
    async with bench.source() as source:
        first = (await end_of(source)).sequence_number or 0
        await bench.publish("0", b"a", b"b", b"c")
        for is_inclusive, wanted in ((False, [b"c"]), (True, [b"b", b"c"])):
            at = EventPosition.from_sequence_number(first + 1, is_inclusive=is_inclusive)
            receiver = await source.open_receiver(GROUP, "0", at)
            events = await take(receiver, len(wanted))
            await receiver.close()

            require_bodies(events, wanted, f"the position is {at}")


async def an_offset_begins_after_or_at_its_event(bench: SourceBench) -> None:
    """The offset of an event begins after it; at it if the position is inclusive."""
    async with opened(bench) as receiver:
        await bench.publish("0", b"a", b"b", b"c")
        offset = (await take(receiver, 3))[1].offset
    for is_inclusive, wanted in ((False, [b"c"]), (True, [b"b", b"c"])):
        at = EventPosition.from_offset(offset, is_inclusive=is_inclusive)
        async with opened(bench, position=at) as receiver:
            require_bodies(await take(receiver, len(wanted)), wanted, f"the position is {at}")


async def a_time_begins_at_the_first_event_of_then_or_later(bench: SourceBench) -> None:
    """The ``enqueued_time`` of an event begins at it; a microsecond later begins after it."""
    async with opened(bench, "1") as receiver:
        await bench.publish("1", b"before")
        await asyncio.sleep(0.02)
        await bench.publish("1", b"then")
        before, then = (event.enqueued_time for event in await take(receiver, 2))
    async with opened(bench, "1", EventPosition.from_enqueued_time(then)) as receiver:
        events_then = await take(receiver, 1)
    await asyncio.sleep(0.02)
    await bench.publish("1", b"after")
    later = EventPosition.from_enqueued_time(then + timedelta(microseconds=1))
    async with opened(bench, "1", later) as receiver:
        events_later = await take(receiver, 1)

    require(
        before < then < before + timedelta(seconds=10),
        "enqueued_time must be when the service received the event",
    )
    require_bodies(events_then, [b"then"], "the position is the time of the event")
    require_bodies(events_later, [b"after"], "the position is after the time of the event")


async def a_position_that_never_existed_is_refused(bench: SourceBench) -> None:
    """An offset that the partition never had is refused, by ``open_receiver`` or ``receive``."""
    await bench.publish("0", b"any")
    async with bench.source() as source:
        for offset in ("nonsense", "999999999"):
            position = EventPosition.from_offset(offset)
            reading = read(source, GROUP, "0", position)
            await refused(reading, bench.refusal, f"reading from offset {offset!r}")


async def other_partitions_and_groups_are_not_displaced(bench: SourceBench) -> None:
    """Receivers of several partitions, and of several groups, read beside each other."""
    async with bench.source() as source:
        receivers = [
            await source.open_receiver(group, partition_id, await end_of(source, partition_id))
            for group, partition_id in ((GROUP, "0"), (GROUP, "1"), (OTHER_GROUP, "0"))
        ]
        await bench.publish("0", b"zero")
        await bench.publish("1", b"one")
        for receiver, wanted in zip(receivers, (b"zero", b"one", b"zero"), strict=True):
            require_bodies(await take(receiver, 1), [wanted], "three receivers are open")


async def properties_have_the_first_and_last_event_of_a_partition(bench: SourceBench) -> None:
    """``partition_properties`` tells where a partition begins and ends, also an empty one."""
    async with opened(bench) as receiver:
        await bench.publish("0", b"newest")
        events = await take(receiver, 1)
        require_bodies(events, [b"newest"], "one event was published")
        newest = events[0]
        async with bench.source() as source:
            full = await source.partition_properties("0")
            empty = await source.partition_properties("2")
            both = await source.properties_of(["2", "0"])

    require(
        0 <= full.beginning_sequence_number <= newest.sequence_number
        and full.last_enqueued_sequence_number == newest.sequence_number
        and full.last_enqueued_offset == newest.offset
        and full.last_enqueued_time == newest.enqueued_time
        and not full.is_empty,
        f"the newest event is {newest}, and the properties are {full}",
    )
    require(
        (empty.last_enqueued_sequence_number, empty.last_enqueued_time, empty.is_empty)
        == (-1, None, True),
        f"an empty partition ends at number -1 without a time; its properties are {empty}",
    )
    require(list(both) == [empty, full], "properties_of must have the wanted order")


async def a_receiver_knows_the_last_enqueued_event(bench: SourceBench) -> None:
    """When all events were received, ``last_enqueued`` is the last of them."""
    async with opened(bench) as receiver:
        before = receiver.last_enqueued
        await bench.publish("0", *numbered(20))
        events = await take(receiver, 20)
        after = receiver.last_enqueued

    last = (events[-1].sequence_number, events[-1].offset)
    require(
        before is None or before.sequence_number < events[0].sequence_number,
        "last_enqueued must not be ahead of the partition",
    )
    require(
        after is not None and (after.sequence_number, after.offset) == last,
        f"the newest event is {last}, and last_enqueued is {after}",
    )


async def new_partitions_are_listed_and_readable(bench: SourceBench) -> None:
    """If partitions can be added, ``partition_ids`` has them, and an open source reads them."""
    async with bench.source() as source:
        before = await source.partition_ids()
        if not await bench.grow():
            raise SkippedError("no partition can be added to this hub by its users")
        after = await source.partition_ids()
        new = str(len(before))
        receiver = await source.open_receiver(GROUP, new, EARLIEST)
        await bench.publish(new, b"first")
        events = await take(receiver, 1)

    require(list(after) == [*before, new], f"partition {new} was added, and the ids are {after}")
    require_bodies(events, [b"first"], "the new partition has one event")
