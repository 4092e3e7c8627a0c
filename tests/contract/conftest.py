"""Every store, twice over the same data, and a way to lose answers where requests are repeated."""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from azure.storage.blob import ContainerClient

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.ports import CheckpointStore
from eventproc.testing import FaultyCheckpointStore, LoseAnswers, LossyProxy


@dataclass
class Stand:
    """One kind of store: makes stores over the same data."""

    make_store: Callable[[], CheckpointStore]
    lose_answers: LoseAnswers | None = None


Stands = Callable[[], AbstractAsyncContextManager[Stand]]


@asynccontextmanager
async def memory_stand() -> AsyncIterator[Stand]:
    """Stores over one account in this process."""
    account = MemoryAccount()
    yield Stand(lambda: MemoryCheckpointStore(account))


@asynccontextmanager
async def faultless_stand() -> AsyncIterator[Stand]:
    """The same behind a fault injector that injects nothing."""
    account, rng = MemoryAccount(), random.Random(1)
    yield Stand(lambda: FaultyCheckpointStore(MemoryCheckpointStore(account), rng))


@asynccontextmanager
async def blob_stand(storage: str, container: str) -> AsyncIterator[Stand]:
    """Stores over one container; over plain HTTP with a proxy that can lose answers."""
    with ContainerClient.from_connection_string(storage, container) as client:
        url = urlsplit(client.url)
    if url.scheme != "http" or url.hostname != "127.0.0.1":
        yield Stand(lambda: BlobCheckpointStore.from_connection_string(storage, container))
        return
    async with LossyProxy(url.port or 80) as proxy:
        through_proxy = storage.replace(f"127.0.0.1:{url.port}", f"127.0.0.1:{proxy.port}")
        yield Stand(
            lambda: BlobCheckpointStore.from_connection_string(through_proxy, container),
            proxy.lose_answers,
        )


@pytest.fixture(params=["memory", "faultless", "sqlite", "blob"])
def stand(request, tmp_path) -> Stands:
    """Each kind of store in turn."""
    if request.param == "memory":
        return memory_stand
    if request.param == "faultless":
        return faultless_stand
    if request.param == "blob":
        storage = request.getfixturevalue("storage")
        container = request.getfixturevalue("container")
        return lambda: blob_stand(storage, container)

    @asynccontextmanager
    async def sqlite_stand() -> AsyncIterator[Stand]:
        yield Stand(lambda: SqliteCheckpointStore(tmp_path / "store.db"))

    return sqlite_stand
