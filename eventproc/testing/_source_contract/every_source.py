"""Clauses for every source: of a log, and of queues.

Relied on by: eventproc/_delivery/reader.py
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from eventproc.errors import (
    ConfigurationError,
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.models import ConsumerGroup, ReceivedEvent
from eventproc.testing._clauses import require
from eventproc.testing._source_contract.bench import (
    BRIEFLY,
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

LONG = timedelta(seconds=30)


async def its_names_can_be_part_of_a_key(bench: SourceBench) -> None:
    """Namespace and hub are known before the source is open, and can be part of a record's key."""
    source = bench.source()
    ConsumerGroup(
        fully_qualified_namespace=source.fully_qualified_namespace,
        eventhub_name=source.eventhub_name,
    )


async def events_come_in_order_and_once(bench: SourceBench) -> None:
    """Events come in the order in which they were published, each once, numbered one by one."""
    async with opened(bench) as receiver:
        await bench.publish("0", *numbered(250))
        events = await take(receiver, 250)
        later = await receiver.receive(events_max=10, wait_max=BRIEFLY)

    require_bodies(events, numbered(250), "250 events were published")
    first = events[0].sequence_number
    require(
        [e.sequence_number for e in events] == list(range(first, first + 250)),
        "the sequence numbers of events that are all there must have no gap",
    )
    require(all(isinstance(e.offset, str) for e in events), "an offset must be a text")
    require(len({e.offset for e in events}) == 250, "each event must have an offset of its own")
    require(all(e.enqueued_time.tzinfo is not None for e in events), "times must have a time zone")
    require(not later, "an event must come once")


async def no_more_than_events_max_are_returned(bench: SourceBench) -> None:
    """``receive`` returns at most ``events_max`` events; the others come in the next calls."""
    async with opened(bench) as receiver:
        await bench.publish("0", *numbered(7))
        batches: list[Sequence[ReceivedEvent]] = []
        while sum(map(len, batches)) < 7:
            batches.append(await receiver.receive(events_max=3, wait_max=SOON))
            require(batches[-1], "events that were published must come")

    require_bodies([e for batch in batches for e in batch], numbered(7), "7 were published")
    require(max(map(len, batches)) <= 3, "no more than events_max=3 may be returned at once")


async def a_waiting_receive_returns_as_soon_as_there_is_an_event(bench: SourceBench) -> None:
    """A call that waits returns with the first event, and does not wait for more of them."""
    async with opened(bench) as receiver:
        waiting = asyncio.create_task(receiver.receive(events_max=10, wait_max=LONG))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        await bench.publish("0", b"now")
        events = await waiting

    require_bodies(events, [b"now"], "one event was published")
    require(time.monotonic() - began < 5, "the wait must end when there is an event")


async def an_empty_receive_takes_wait_max(bench: SourceBench) -> None:
    """Without an event, ``receive`` returns nothing after ``wait_max``; at once if that is 0."""
    async with opened(bench) as receiver:
        for wait_max in (BRIEFLY, timedelta(0)):
            began = time.monotonic()
            events = await receiver.receive(events_max=10, wait_max=wait_max)
            waited_s = time.monotonic() - began

            require(not events, "there was no event to return")
            require(
                0.9 * wait_max.total_seconds() <= waited_s < 10,
                f"a call with wait_max={wait_max} took {waited_s:.2f} s",
            )


async def earliest_begins_at_the_oldest_event(bench: SourceBench) -> None:
    """The position ``earliest`` begins at the oldest event that the partition still has."""
    await bench.publish("0", b"any")
    async with bench.source() as source:
        end = await source.partition_properties("0")
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        events = await take(receiver, 1)

    require(events, "an event that was published must come")
    require(
        events[0].sequence_number == end.beginning_sequence_number,
        "the first event must have the number beginning_sequence_number",
    )


async def a_cancelled_receive_loses_nothing(bench: SourceBench) -> None:
    """A call of ``receive`` may be cancelled at any moment: its events come in the next call."""
    events: list[ReceivedEvent] = []

    async def cancelled_after(turns: int, receiving: asyncio.Task[Sequence[ReceivedEvent]]) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        receiving.cancel()
        with suppress(asyncio.CancelledError):
            events.extend(await receiving)

    async with opened(bench) as receiver:
        await bench.publish("0", *numbered(300))
        events += await take(receiver, 1, events_max=1)
        for attempt in range(100):  # there are events
            receiving = asyncio.create_task(receiver.receive(events_max=2, wait_max=SOON))
            await cancelled_after(attempt % 5, receiving)
        events += await take(receiver, 300 - len(events))
        for attempt in range(15):  # there are none, and one comes just then
            receiving = asyncio.create_task(receiver.receive(events_max=2, wait_max=SOON))
            await asyncio.sleep(0.01)
            await bench.publish("0", b"%d" % (300 + attempt))
            await cancelled_after(attempt % 5, receiving)
            events += await take(receiver, 301 + attempt - len(events))

            require_bodies(events, numbered(301 + attempt), "calls were cancelled")


async def the_newer_receiver_displaces_the_older(bench: SourceBench) -> None:
    """If the service can, a new receiver of a group ends the older one, which says so."""
    if not bench.is_exclusive:
        return
    async with bench.source() as mine, bench.source() as theirs:
        older = await mine.open_receiver(GROUP, "0", await end_of(mine))
        await bench.publish("0", b"for the older")
        await take(older, 1)
        waiting = asyncio.create_task(older.receive(events_max=1, wait_max=LONG))
        await asyncio.sleep(0.05)
        newer = await theirs.open_receiver(GROUP, "0", await end_of(theirs))
        await refused(waiting, ReceiverDisplacedError, "a call of the older receiver")
        again = older.receive(events_max=1, wait_max=SOON)
        await refused(again, ReceiverDisplacedError, "the next call of the older receiver")
        await bench.publish("0", b"for the newer")
        events = await take(newer, 1)

    require_bodies(events, [b"for the newer"], "the newer receiver reads")


async def closing_twice_is_allowed_and_receiving_afterwards_is_refused(bench: SourceBench) -> None:
    """A receiver may be closed twice; then ``receive`` raises ``SourceUnavailableError``."""
    async with opened(bench) as receiver:
        await receiver.close()
        await receiver.close()
        receiving = receiver.receive(events_max=1, wait_max=SOON)
        await refused(receiving, SourceUnavailableError, "receive after close")


async def a_source_closes_at_once_with_its_receivers_and_opens_again(bench: SourceBench) -> None:
    """Closing a source ends calls of its receivers; it may be opened and closed repeatedly."""
    source = bench.source()
    await source.open()
    await source.open()
    receiver = await source.open_receiver(GROUP, "0", await end_of(source))
    waiting = asyncio.create_task(receiver.receive(events_max=1, wait_max=LONG))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    await source.close()
    await source.close()
    closing_s = time.monotonic() - began
    await refused(waiting, SourceUnavailableError, "a call of receive when the source is closed")
    async with source:
        ids = await source.partition_ids()

    require(closing_s < 15, f"closing took {closing_s:.1f} s")
    require(
        list(ids[:3]) == ["0", "1", "2"],
        f"a source that is opened again must list the partitions '0', '1' and '2', not {ids}",
    )


async def an_unknown_partition_is_refused(bench: SourceBench) -> None:
    """A partition that does not exist is refused for good, by an error with its id."""
    async with bench.source() as source:
        opening = source.open_receiver(GROUP, "77", EARLIEST)
        asking = source.partition_properties("77")
        messages = [
            await refused(opening, SourceRejectedError, "opening partition 77"),
            await refused(asking, SourceRejectedError, "asking for partition 77"),
        ]

    require(
        all("77" in message for message in messages),
        f"each message must name the partition 77: {messages}",
    )


async def an_unknown_group_is_a_configuration_error(bench: SourceBench) -> None:
    """If the service has consumer groups, an unknown one is refused by an error with its name."""
    if not bench.is_exclusive:
        return
    async with bench.source() as source:
        await refused(read(source, "nobody", "0", EARLIEST), bench.refusal, "reading as nobody")
        checking = source.check_consumer_group("nobody")
        message = await refused(checking, ConfigurationError, "checking group nobody")

    require("nobody" in message, "the message must name the group")


async def checking_a_group_disturbs_no_receiver(bench: SourceBench) -> None:
    """``check_consumer_group`` displaces nobody and takes no event."""
    async with bench.source() as source:
        await source.check_consumer_group(OTHER_GROUP)
        receiver = await source.open_receiver(GROUP, "0", await end_of(source))
        await source.check_consumer_group(GROUP)
        await bench.publish("0", b"still here")
        events = await take(receiver, 1)

    require_bodies(events, [b"still here"], "the group was checked while a receiver was open")
