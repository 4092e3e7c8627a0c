"""What a source has, read from its beginning."""

from collections.abc import Sequence
from datetime import timedelta

from eventproc import EventPosition, ReceivedEvent
from eventproc.ports import EventSource

SOON = timedelta(seconds=10)


async def received(source: EventSource, counts: Sequence[int]) -> list[list[ReceivedEvent]]:
    """Return so many events of each partition."""
    found: list[list[ReceivedEvent]] = []
    async with source:
        for partition, count in enumerate(counts):
            receiver = await source.open_receiver(
                "$Default", str(partition), EventPosition.earliest()
            )
            events: list[ReceivedEvent] = []
            while len(events) < count:
                events += await receiver.receive(events_max=100, wait_max=SOON)
            await receiver.close()
            found.append(events)
    return found
