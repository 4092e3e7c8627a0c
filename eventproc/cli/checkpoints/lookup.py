"""Single events, looked up in the hub: which was the last before, and the first after.

Rule: a receiver interrupts whoever reads the partition in the same consumer group, so the caller
says through which group to look.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from eventproc.errors import SourceUnavailableError
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.ports import EventSource

WAIT_MAX: Final = timedelta(seconds=15)
"""For an event that the hub says it has."""

_BATCH_MAX: Final = 100


async def event_at_or_before(
    source: EventSource, group_name: str, partition_id: str, number: int, *, first: int
) -> ReceivedEvent | None:
    """Return the event of this sequence number, or the nearest below it if there is a gap.

    Args:
        source: An open source.
        group_name: The consumer group to read through.
        partition_id: Where to look.
        number: The sequence number.
        first: That of the oldest event; ``None`` comes back where there is none from there on.
    """
    back = 0
    while True:
        start = max(first, number - back)
        position = EventPosition.from_sequence_number(start, is_inclusive=True)
        found = [
            event
            for event in await _read(source, group_name, partition_id, position, until=number)
            if event.sequence_number <= number
        ]
        if found:
            return found[-1]
        if start == first:
            return None
        back = 2 * back + 1


async def first_event(
    source: EventSource, group_name: str, partition_id: str, position: EventPosition
) -> ReceivedEvent:
    """Return the first event from a position on; there has to be one."""
    return (await _read(source, group_name, partition_id, position, until=-1))[0]


async def _read(
    source: EventSource, group_name: str, partition_id: str, position: EventPosition, *, until: int
) -> Sequence[ReceivedEvent]:
    """At least one event, and all up to the one with the number *until*."""
    receiver = await source.open_receiver(group_name, partition_id, position)
    found: list[ReceivedEvent] = []
    try:
        while not found or found[-1].sequence_number < until:
            events = await receiver.receive(events_max=_BATCH_MAX, wait_max=WAIT_MAX)
            if not events:
                raise SourceUnavailableError(
                    f"partition {partition_id} did not deliver an event that it has"
                )
            found += events
    finally:
        await receiver.close()
    return found
