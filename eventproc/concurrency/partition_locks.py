"""Serializes the writes of each partition."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager


class PartitionLocks:
    """A lock for each partition, for use on one event loop.

    Two concurrent conditional writes of one partition would conflict: the first one replaces the
    ETag that the second one expects.
    """

    def __init__(self) -> None:
        self._writing: set[str] = set()
        self._written = asyncio.Condition()

    @asynccontextmanager
    async def hold(self, partition_ids: Collection[str]) -> AsyncIterator[None]:
        """Hold the locks of all these partitions for the length of an ``async with`` block."""
        wanted = frozenset(partition_ids)
        async with self._written:
            await self._written.wait_for(lambda: not wanted & self._writing)
            self._writing |= wanted
        try:
            yield
        finally:
            async with self._written:
                self._writing -= wanted
                self._written.notify_all()
