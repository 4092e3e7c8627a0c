"""The sources of a small world: they count their links, and may begin early."""

from collections import Counter

from eventproc.models import EventPosition
from eventproc.sources.memory import MemoryEventSource, MemoryHub


class CountedSource(MemoryEventSource):
    """Counts the links that it opens, by partition."""

    def __init__(self, hub: MemoryHub, opened: Counter[str]) -> None:
        super().__init__(hub)
        self._opened = opened

    async def open_receiver(self, consumer_group, partition_id, position):
        self._opened[partition_id] += 1
        return await super().open_receiver(consumer_group, partition_id, position)


class EarlySource(CountedSource):
    """Begins some events before the position that it was asked for, as some services may."""

    async def open_receiver(self, consumer_group, partition_id, position):
        if position.sequence_number is not None:
            position = EventPosition.from_sequence_number(max(-1, position.sequence_number - 3))
        return await super().open_receiver(consumer_group, partition_id, position)
