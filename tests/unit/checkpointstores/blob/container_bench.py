"""A blob container in memory, whose answers can be lost: the blob store without a service."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any

from checkpointstores._requests import Written
from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.blob._container import BlobItem, Listing
from eventproc._base.azure_storage.answers import ConditionFailedError
from eventproc.errors import StoreUnavailableError
from eventproc.models import Checkpoint, CheckpointUpdate, ConsumerGroup, Member, OwnershipClaim
from eventproc.testing._virtual_time import run_virtual

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
CLAIM = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
MEMBER = Member(owner_id="a", incarnation="1")

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
NO_ANSWER = StoreUnavailableError("no answer")


class MemoryContainer:
    """A ``BlobContainer`` in memory. Its time is the event loop's, in whole seconds.

    ``requests`` has the name of each request, in order.
    """

    def __init__(self) -> None:
        self.blobs: dict[str, BlobItem] = {}
        self.requests: list[str] = []
        self._writes = 0
        self._failures: Iterator[Exception | None] = iter(())
        self._is_carried_out = True

    @property
    def now(self) -> datetime:
        """The service's time."""
        return NOON + timedelta(seconds=int(asyncio.get_running_loop().time()))

    @contextmanager
    def failing(
        self, failures: Iterable[Exception | None], *, is_carried_out: bool = True
    ) -> Iterator[None]:
        """Raise the next of *failures* at each request, after it is carried out or instead.

        ``None``, and no more failures: the request is answered.
        """
        self._failures, self._is_carried_out = iter(failures), is_carried_out
        try:
            yield
        finally:
            self._failures = iter(())

    @asynccontextmanager
    async def lose_answers(self, count: int | None) -> AsyncIterator[None]:
        """Lose the answers to the next *count* requests; ``None``: to all."""
        lost = repeat(NO_ANSWER) if count is None else repeat(NO_ANSWER, count)
        with self.failing(lost):
            yield

    async def open(self) -> None:
        """Do nothing: there is no connection."""

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    async def list(self, prefix: str) -> Listing:
        await self._arrives("list")
        as_of = self.now
        items = [
            replace(blob, body=b"")
            for name, blob in sorted(self.blobs.items())
            if name.startswith(prefix)
        ]
        await self._answers()
        return Listing(items=tuple(items), as_of=as_of)

    async def read(self, name: str, *, body_bytes_max: int = 0) -> BlobItem | None:
        await self._arrives("read")
        found = self.blobs.get(name)
        await self._answers()
        return found and replace(found, body=found.body[: body_bytes_max and body_bytes_max + 1])

    async def put(
        self, name: str, metadata: Mapping[str, str], body: bytes | None, *, etag: str | None
    ) -> Written:
        keeps_body = body is None and etag is not None
        await self._arrives("set_metadata" if keeps_body else "put")
        found = self.blobs.get(name)
        written = None
        if (found and found.etag) == etag:
            kept = found.body if found and keeps_body else b""
            written = self._store(name, metadata, kept if body is None else body)
        return await self._written(written)

    async def delete(self, name: str, *, etag: str) -> None:
        await self._arrives("delete")
        found = self.blobs.get(name)
        is_mine = found is not None and found.etag == etag
        if is_mine:
            del self.blobs[name]
        await self._answers()
        if not is_mine:
            raise ConditionFailedError(was_repeated=False)

    def write(self, name: str, metadata: Mapping[str, str | None], body: bytes = b"") -> BlobItem:
        """Write a blob as another program does, whatever is there."""
        self._store(name, metadata, body)
        return self.blobs[name]

    def _store(self, name: str, metadata: Mapping[str, str | None], body: bytes) -> Written:
        self._writes += 1
        etag = f"0x{self._writes:X}"
        self.blobs[name] = BlobItem(
            name=name, etag=etag, last_modified=self.now, metadata=dict(metadata), body=body
        )
        return Written(etag=etag, last_modified=self.now)

    async def _written(self, written: Written | None) -> Written:
        await self._answers()
        if written is None:
            raise ConditionFailedError(was_repeated=False)
        return written

    async def _arrives(self, request: str) -> None:
        self.requests.append(request)
        await asyncio.sleep(0)
        if not self._is_carried_out:
            self._fail()

    async def _answers(self) -> None:
        await asyncio.sleep(0)
        if self._is_carried_out:
            self._fail()

    def _fail(self) -> None:
        failure = next(self._failures, None)
        if failure is not None:
            raise failure


class MemoryBlobStore(BlobCheckpointStore):
    """The blob store over a ``MemoryContainer``."""

    def __init__(self, container: MemoryContainer, *, legacy_prefix: str | None = None) -> None:
        url = "https://memory.blob.core.windows.net"
        super().__init__(url, "memory", legacy_prefix=legacy_prefix)
        self._blobs.vendor = container


Scenario = Callable[[MemoryContainer, MemoryBlobStore], Coroutine[object, object, Any]]


def result_of(scenario: Scenario, *, legacy_prefix: str | None = None) -> Any:
    """Play a scenario on an open store over a new container, on virtual time."""

    async def play() -> Any:
        container = MemoryContainer()
        async with MemoryBlobStore(container, legacy_prefix=legacy_prefix) as store:
            return await scenario(container, store)

    return run_virtual(play())


async def stored(store: MemoryBlobStore, update: CheckpointUpdate) -> Checkpoint:
    """Write a checkpoint and return it."""
    result = await store.update_checkpoint(GROUP, update)
    assert result.checkpoint is not None
    return result.checkpoint
