"""Clauses for the source of queues: the service itself keeps how far a partition is done."""

from eventproc.models import EventPosition, SequenceRange
from eventproc.ports import QueueReceiver, QueueSource
from eventproc.testing._clauses import require
from eventproc.testing._source_contract.bench import (
    BRIEFLY,
    EARLIEST,
    GROUP,
    SourceBench,
    numbered,
    require_bodies,
    take,
)


async def _open(source: QueueSource, after: int | None = None) -> QueueReceiver:
    position = EARLIEST if after is None else EventPosition.from_sequence_number(after)
    return await source.open_receiver(GROUP, "0", position)


def _queue_of(bench: SourceBench) -> QueueSource:
    source = bench.source()
    assert isinstance(source, QueueSource)
    return source


async def what_is_settled_is_gone_and_the_rest_comes_again(bench: SourceBench) -> None:
    """Events that were not settled come again, in order, with the numbers after the position."""
    await bench.publish("0", *numbered(10))
    async with _queue_of(bench) as source:
        first = await _open(source)
        events = await take(first, 10)
        last = events[-1].sequence_number
        require_bodies(events, numbered(10), "nothing was settled")
        numbers = [event.sequence_number for event in events]
        first.settle(numbers[3], [SequenceRange(numbers[6], numbers[7])])
        await first.until_settled()
        await first.close()
        second = await _open(source, after=last)
        rest = await take(second, 4)
        second.settle(rest[-1].sequence_number)
        await second.until_settled()
        await second.close()
        third = await _open(source, after=last + 4)
        left = await third.receive(events_max=10, wait_max=BRIEFLY)

    require_bodies(rest, [b"4", b"5", b"8", b"9"], "the first four and two others were settled")
    require(
        [event.sequence_number for event in rest] == [last + n for n in range(1, 5)],
        "a link must number its events from its position on",
    )
    require(all(map(source.was_delivered, rest)), "events that came before were delivered")
    require(not left, "everything was settled")


async def no_more_than_unsettled_max_come_before_some_are_settled(bench: SourceBench) -> None:
    """At most ``unsettled_max`` events come; when some of them are settled, more come."""
    async with _queue_of(bench) as source:
        most = source.unsettled_max
        await bench.publish("0", *numbered(most + 2))
        receiver = await _open(source)
        events = await take(receiver, most)
        early = await receiver.receive(events_max=10, wait_max=BRIEFLY)
        receiver.settle(events[-1].sequence_number)
        rest = await take(receiver, 2)
        receiver.settle(rest[-1].sequence_number)

    require(not early, f"{most} events were received and none of them is settled")
    require_bodies([*events, *rest], numbered(most + 2), "all of them must come")


async def what_was_received_may_be_settled_after_a_stop(bench: SourceBench) -> None:
    """After ``stop`` no event is taken, and what was received may be settled until ``close``."""
    async with _queue_of(bench) as source:
        receiver = await _open(source)
        await bench.publish("0", b"0")
        events = await take(receiver, 1)
        await receiver.stop()
        await bench.publish("0", b"1")
        receiver.settle(events[0].sequence_number)
        await receiver.until_settled()
        await receiver.close()
        following = await _open(source, after=events[0].sequence_number)
        left = await take(following, 1)

    require_bodies(left, [b"1"], "the first event was settled after the stop")
