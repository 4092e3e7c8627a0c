"""Each kind of store: two instances over the same data, and a way to lose answers if it retries."""

import random
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from azure.storage.blob import ContainerClient

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from checkpointstores.tables import TableCheckpointStore
from eventproc.ports import CheckpointStore
from eventproc.testing import FaultyCheckpointStore, LoseAnswers
from tests.servers.lossy_proxy import LossyProxy
from tests.servers.postgres_server import PostgresServer


@dataclass
class StoreKind:
    """One kind of store: ``make_store`` makes unopened stores over the same data."""

    make_store: Callable[[], CheckpointStore]
    lose_answers: LoseAnswers | None = None


OpenStoreKind = Callable[[], AbstractAsyncContextManager[StoreKind]]


@asynccontextmanager
async def memory_kind() -> AsyncIterator[StoreKind]:
    """Yield memory stores over one account."""
    account = MemoryAccount()
    yield StoreKind(lambda: MemoryCheckpointStore(account))


@asynccontextmanager
async def faultless_kind() -> AsyncIterator[StoreKind]:
    """Yield memory stores behind a fault injector that injects nothing."""
    account, rng = MemoryAccount(), random.Random(1)
    yield StoreKind(lambda: FaultyCheckpointStore(MemoryCheckpointStore(account), rng))


@asynccontextmanager
async def blob_kind(storage: str, container: str) -> AsyncIterator[StoreKind]:
    """Yield blob stores over one container; over plain HTTP, through a proxy that loses answers."""
    with ContainerClient.from_connection_string(storage, container) as client:
        url = urlsplit(client.url)
    if url.scheme != "http" or url.hostname != "127.0.0.1":
        yield StoreKind(lambda: BlobCheckpointStore.from_connection_string(storage, container))
        return
    async with LossyProxy(url.port or 80) as proxy:
        through_proxy = storage.replace(f"127.0.0.1:{url.port}", f"127.0.0.1:{proxy.port}")
        yield StoreKind(
            lambda: BlobCheckpointStore.from_connection_string(through_proxy, container),
            proxy.lose_answers,
        )


@asynccontextmanager
async def postgres_kind(server: PostgresServer) -> AsyncIterator[StoreKind]:
    """Yield PostgreSQL stores in a schema of their own, through a proxy that loses answers."""
    schema = f"s{uuid.uuid4().hex}"
    async with LossyProxy(server.port) as proxy:
        dsn = server.dsn_through(proxy.port)
        yield StoreKind(
            lambda: PostgresCheckpointStore(dsn, schema=schema, create_schema=True),
            proxy.lose_answers,
        )


@asynccontextmanager
async def tables_kind(endpoint: str, storage: str) -> AsyncIterator[StoreKind]:
    """Yield table stores over one table, through a proxy that loses answers."""
    url = urlsplit(endpoint)
    name = f"t{uuid.uuid4().hex}"
    async with LossyProxy(url.port or 80) as proxy:
        through_proxy = storage.replace(f"127.0.0.1:{url.port}", f"127.0.0.1:{proxy.port}")
        yield StoreKind(
            lambda: TableCheckpointStore.from_connection_string(
                through_proxy, name, create_table=True
            ),
            proxy.lose_answers,
        )


@pytest.fixture(params=["memory", "faultless", "sqlite", "blob", "postgres", "tables"])
def store_kind(request, tmp_path) -> OpenStoreKind:
    """Return each kind of store in turn, as a function that opens a context manager."""
    if request.param == "memory":
        return memory_kind
    if request.param == "faultless":
        return faultless_kind
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        return lambda: postgres_kind(server)
    if request.param == "tables":
        server = request.getfixturevalue("tables")
        return lambda: tables_kind(server.table_endpoint, server.connection_string)
    if request.param == "blob":
        storage = request.getfixturevalue("storage")
        container = request.getfixturevalue("container")
        return lambda: blob_kind(storage, container)

    @asynccontextmanager
    async def sqlite_kind() -> AsyncIterator[StoreKind]:
        yield StoreKind(lambda: SqliteCheckpointStore(tmp_path / "store.db"))

    return sqlite_kind
