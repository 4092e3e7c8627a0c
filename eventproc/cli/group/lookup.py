"""Look up single events in the hub: the last one before a position, the first one after it.

Opening a receiver interrupts the owner of the partition in the same consumer group, so the caller
chooses the consumer group to read through.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from eventproc.errors import SourceUnavailableError
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.ports import EventSource

WAIT_MAX: Final = timedelta(seconds=15)
"""How long to wait for an event that is in the hub by its partition properties."""

_BATCH_MAX: Final = 100


async def event_at_or_before(
    source: EventSource, group_name: str, partition_id: str, number: int, *, first: int
) -> ReceivedEvent | None:
    """Return the event of this sequence number, or the last one before it if it is missing.

    Args:
        source: An open source.
        group_name: The consumer group to read through.
        partition_id: The partition.
        number: The sequence number.
        first: The sequence number of the oldest event.

    Returns:
        ``None`` if there is no event from *first* to *number*.
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
    """Return the first event from a position on; the hub must have one."""
    return (await _read(source, group_name, partition_id, position, until=-1))[0]


async def _read(
    source: EventSource, group_name: str, partition_id: str, position: EventPosition, *, until: int
) -> Sequence[ReceivedEvent]:
    """Read at least one event, and all events up to the sequence number *until*."""
    receiver = await source.open_receiver(group_name, partition_id, position)
    found: list[ReceivedEvent] = []
    try:
        while not found or found[-1].sequence_number < until:
            events = await receiver.receive(events_max=_BATCH_MAX, wait_max=WAIT_MAX)
            if not events:
                raise SourceUnavailableError(
                    f"partition {partition_id} did not deliver an event that the hub has"
                )
            found += events
    finally:
        await receiver.close()
    return found
