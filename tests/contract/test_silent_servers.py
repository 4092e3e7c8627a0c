"""A server that accepts a connection and never answers, or without end: each request has a limit.

A call without one would wait for ever: no lease is renewed, no event received, and nothing logged.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.tables import TableCheckpointStore
from eventproc.errors import EventProcError
from eventproc.models import ConsumerGroup
from eventproc.rosters.kubernetes import StatefulSetRoster
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource
from eventproc.sources.kafka import KafkaEventSource, KafkaOptions
from eventproc.sources.rabbitmq import QueueOptions, RabbitQueues
from tests.servers.listening import end_connections, stop_listening

LIMIT = timedelta(seconds=0.3)
HANGS_S = 8.0
"""What a call must not take: several attempts of ``LIMIT``, and the waits between them, fit."""

KEY = "QUJD"
GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")


class SilentServer:
    """Accepts connections, reads, and answers nothing; or a header after the other."""

    def __init__(self, *, trickles: bool) -> None:
        self.trickles = trickles
        self.port = 0
        self.connection_count = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["SilentServer"]:
        """Serve in the block."""
        tasks: set[asyncio.Task[None]] = set()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connection_count += 1
            with suppress(OSError), closing(writer):
                await reader.read(1)
                if self.trickles:
                    writer.write(b"HTTP/1.1 200 OK\r\n")
                while not writer.is_closing():
                    await asyncio.sleep(0.25)  # Sooner than a read may take.
                    writer.write(b"x-more: 1\r\n" if self.trickles else b"")
                    await writer.drain()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(asyncio.create_task(answer(reader, writer)))

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            await stop_listening(server)
            await end_connections(tasks)


def storage(port: int, service: str) -> str:
    """A connection string of a storage account."""
    return (
        f"DefaultEndpointsProtocol=http;AccountName=contoso;AccountKey={KEY};"
        f"{service}Endpoint=http://127.0.0.1:{port}/contoso;"
    )


async def ask_store(store: Any) -> None:
    """Open and list."""
    async with store:
        await store.list_ownership(GROUP)


async def ask_source(source: Any) -> None:
    """Open, and ask for partitions and positions."""
    async with source:
        await source.partition_ids()
        await source.partition_properties("0")


async def ask_blobs(port: int, _: Path) -> None:
    """Azure blob storage."""
    conn_str = storage(port, "Blob")
    await ask_store(
        BlobCheckpointStore.from_connection_string(conn_str, "leases", request_timeout=LIMIT)
    )


async def ask_tables(port: int, _: Path) -> None:
    """Azure tables."""
    conn_str = storage(port, "Table")
    await ask_store(
        TableCheckpointStore.from_connection_string(conn_str, "leases", request_timeout=LIMIT)
    )


async def ask_postgres(port: int, _: Path) -> None:
    """PostgreSQL."""
    await ask_store(
        PostgresCheckpointStore(f"host=127.0.0.1 port={port} user=u dbname=d", timeout=LIMIT)
    )


async def ask_event_hub(port: int, _: Path) -> None:
    """An event hub, by AMQP."""
    conn_str = (
        f"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=k;SharedAccessKey={KEY};"
        "UseDevelopmentEmulator=true;EntityPath=hub"
    )
    options = EventHubOptions(connect_timeout=LIMIT)
    await ask_source(EventHubSource.from_connection_string(conn_str, options=options))


async def ask_kafka(port: int, _: Path) -> None:
    """A topic of Kafka."""
    options = KafkaOptions(connect_timeout=LIMIT)
    await ask_source(KafkaEventSource(f"127.0.0.1:{port}", topic="hub", options=options))


async def ask_queues(port: int, _: Path) -> None:
    """Queues of RabbitMQ."""
    options = QueueOptions(connect_timeout=LIMIT)
    url = f"amqp://guest:guest@127.0.0.1:{port}"
    await ask_source(RabbitQueues(url, prefix="hub", count=1, options=options))


async def ask_kubernetes(port: int, folder: Path) -> None:
    """The API server of Kubernetes."""
    config = folder / "kubeconfig"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, "
        "contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}], "
        f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]}}"
    )
    roster = StatefulSetRoster(
        "hub", pod_name="hub-0", namespace="n", kubeconfig=str(config), timeout=LIMIT
    )
    await roster.open()
    try:
        await roster.owner_ids()
    finally:
        await roster.close()


CALLS: dict[str, Callable[[int, Path], Any]] = {
    call.__name__: call
    for call in (
        ask_blobs,
        ask_tables,
        ask_postgres,
        ask_event_hub,
        ask_kafka,
        ask_queues,
        ask_kubernetes,
    )
}


@pytest.mark.parametrize("trickles", [False, True], ids=["silent", "trickling"])
@pytest.mark.parametrize("name", CALLS)
async def test_a_call_without_an_answer_ends_with_an_error(name, trickles, tmp_path):
    """Also if the answer has no end: then no single read takes long."""
    async with SilentServer(trickles=trickles).serving() as server:
        begun_s = time.monotonic()
        async with asyncio.timeout(2 * HANGS_S):
            with pytest.raises(EventProcError):
                await CALLS[name](server.port, tmp_path)
        took_s = time.monotonic() - begun_s

    assert server.connection_count >= 1
    assert took_s < HANGS_S
