"""Dead letters in memory, and what becomes of them in a replay."""

from datetime import UTC, datetime, timedelta
from typing import Any

from eventproc import Backoff, ConsumerGroup, DeadLetter, ReceivedEvent
from eventproc.dead_letters import (
    LetterOutcome,
    MemoryDeadLetterReader,
    MemoryDeadLetterSink,
    matching,
    replay,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GROUP = ConsumerGroup(fully_qualified_namespace="memory", eventhub_name="hub")
QUICK = Backoff(initial=timedelta(seconds=0.1))
REPLAYED, REFUSED, HELD_BACK, DAMAGED = LetterOutcome


def letter(number: int, key: str | None = None, **fields: Any) -> DeadLetter:
    """Return the dead letter of an event of partition 1; *fields* are of the event."""
    event = ReceivedEvent(
        body=b"%d" % number,
        sequence_number=number,
        offset=str(number),
        enqueued_time=NOON,
        partition_key=key,
        **{"properties": {"kind": "order"}, **fields},
    )
    return DeadLetter(
        event=event,
        group=GROUP,
        partition_id="1",
        owner_id="a",
        attempt_count=1,
        error_type="ValueError",
        error_message="",
        traceback="",
        given_up_at=NOON,
    )


async def stored(*letters: DeadLetter) -> MemoryDeadLetterReader:
    """Return a reader of these letters."""
    sink = MemoryDeadLetterSink()
    for each in letters:
        await sink.store(each)
    return MemoryDeadLetterReader(sink)


async def replayed(reader, target, letters=None) -> list[LetterOutcome]:
    """Replay letters, by default all; return what became of each."""
    found = await matching(reader) if letters is None else letters
    async with target:
        return [result.outcome async for result in replay(reader, target, found)]


async def left(reader) -> list[int]:
    """Return the numbers of the letters that stay."""
    return [s.letter.event.sequence_number for s in await matching(reader) if s.letter]
