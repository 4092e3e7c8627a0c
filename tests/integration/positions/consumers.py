"""Genuine consumers that handle events up to a number, checkpoint each, and stop; and ours."""

import asyncio
import json
import shutil
import ssl
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore as AzureStore
from azure.storage.blob import ContainerClient
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from eventproc import CheckpointPolicy, EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc.emulator import EventHubsEmulator
from eventproc.ports import CheckpointStore, EventSource
from tests.integration.emulator.foreign_clients import (
    ForeignClient,
    Program,
    folder_of,
    java_command,
)
from tests.integration.positions.blobs import blobs_in
from tests.servers.certificates import certificates_in
from tests.servers.connect_proxy import ConnectProxy

Handled = list[tuple[str, int]]
"""Partition and sequence number of each event, as they were handled."""

HERE: Final = Path(__file__).parent
JAVASCRIPT: Final = HERE.parent / "emulator/javascript/node_modules"
NODE: Final = shutil.which("node")
TIMEOUT_S: Final = 60


async def publish(hub: str, partition_ids: Iterable[str], count: int) -> None:
    """Send events to some partitions of the hub with this connection string."""
    async with EventHubProducerClient.from_connection_string(hub) as producer:
        for partition_id in partition_ids:
            await producer.send_batch(
                [EventData(f"{partition_id}/{index}") for index in range(count)],
                partition_id=partition_id,
            )


async def python_handles(
    hub: str, storage: str, container: str, last: int, partition_ids: Iterable[str]
) -> Handled:
    """Handle with ``azure-eventhub`` and its checkpoint store in blobs."""
    handled, left, over = Handled(), set(partition_ids), asyncio.Event()
    store = AzureStore.from_connection_string(storage, container)
    client = EventHubConsumerClient.from_connection_string(
        hub, "$Default", checkpoint_store=store, load_balancing_interval=0.5
    )

    async def on_event(context, event):
        if event.sequence_number > last:
            return
        handled.append((context.partition_id, event.sequence_number))
        await context.update_checkpoint(event)
        if event.sequence_number == last:
            left.discard(context.partition_id)
        if not left:
            over.set()

    async with store, client:
        receiving = asyncio.create_task(client.receive(on_event, starting_position="-1"))
        async with asyncio.timeout(TIMEOUT_S):
            await over.wait()
        await client.close()
        await receiving
    return handled


async def javascript_handles(
    hub: str, storage: str, container: str, last: int, partition_ids: Iterable[str]
) -> Handled:
    """Handle with ``@azure/event-hubs`` and its checkpoint store in blobs."""
    name = hub.rpartition("EntityPath=")[2]
    arguments = hub, name, storage, container, str(last), ",".join(partition_ids)
    return await _program_handles(str(NODE), str(HERE / "half.js"), *arguments)


async def _program_handles(*command: str) -> Handled:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return [(partition_id, number) for partition_id, number in json.loads(out)]


async def host_handles(
    emulator: EventHubsEmulator,
    storage: str,
    container: str,
    last: int,
    partition_ids: Iterable[str],
    after: Mapping[str, int],
    folder: Path,
) -> Handled:
    """Handle with Java's ``EventProcessorHost``, which connects to port 443 with TLS.

    A partition without a lease begins after the number in *after*, or at its first event.
    """
    tls = certificates_in(folder)
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(tls.certificate, tls.key)
    authority = x509.load_pem_x509_certificate(tls.ca.read_bytes())
    trusted = pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(authority, b"ca")], BestAvailableEncryption(b"secret")
    )
    (folder / "trusted.p12").write_bytes(trusted)
    hub = emulator.connection_string_for("Orders").replace("UseDevelopmentEmulator=true;", "")
    assert emulator.websocket_port is not None
    async with ConnectProxy(emulator.websocket_port, shown) as proxy:
        options = {
            "https.proxyHost": "127.0.0.1",
            "https.proxyPort": str(proxy.port),
            "http.nonProxyHosts": "",
            "javax.net.ssl.trustStore": str(folder / "trusted.p12"),
            "javax.net.ssl.trustStorePassword": "secret",
        }
        return await _program_handles(
            *java_command(
                folder_of("azure_eph"), *(f"-D{name}={options[name]}" for name in options)
            ),
            *("Host", hub, storage, container, str(last), ",".join(partition_ids)),
            ",".join(f"{partition_id}={number}" for partition_id, number in after.items()),
        )


def dapr_handles(
    hub: str, azure: ContainerClient, storage: str, last: int, partition_ids: Iterable[str]
) -> Handled:
    """Handle with Dapr's component; nothing after *last* may be in the hub."""
    connection, _, name = hub.rpartition(";EntityPath=")
    client = str(folder_of("dapr") / "client")
    program = Program([client, connection, name, storage, azure.container_name])
    assert program.process.stdin is not None

    def wait_until(key: str, value: str) -> None:
        """Wait until the records of all partitions have this."""
        end_s = time.monotonic() + TIMEOUT_S
        wanted = {(partition_id, value) for partition_id in partition_ids}
        while not wanted <= {
            (blob.name.rpartition("/")[2], blob.metadata.get(key)) for blob in blobs_in(azure)
        }:
            assert time.monotonic() < end_s, program.said
            time.sleep(0.1)

    try:
        wait_until("sequencenumber", str(last))
        program.process.stdin.write("stop\n")
        program.process.stdin.flush()
        wait_until("ownerid", "")
    finally:
        program.stop(TIMEOUT_S)
    return [(line["handled"], line["sequence_number"]) for line in program.said]


def kafka_handles(servers: str, topic: str, group: str, last: int, partitions: int) -> Handled:
    """Handle with librdkafka, committing each message to a consumer group of Kafka.

    Its partitions are assigned by hand, because to join a group takes seconds.
    """
    handled, left = Handled(), set(range(partitions))
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in sorted(left)])
    until_s = time.monotonic() + TIMEOUT_S
    while left:
        assert time.monotonic() < until_s
        message = consumer.poll(1)
        if message is None or message.error() is not None:
            continue
        partition, number = message.partition(), message.offset()
        if number is None or number > last:
            continue
        handled.append((str(partition), number))
        consumer.commit(message=message, asynchronous=False)
        if number == last:
            left.discard(partition)
    consumer.close()
    return handled


async def java_handles(
    hub: str, storage: str, container: str, last: int, partition_ids: Iterable[str]
) -> Handled:
    """Handle with ``azure-messaging-eventhubs`` and its checkpoint store in blobs."""
    return await asyncio.to_thread(
        _sdk_handles, "java", hub, storage, container, last, partition_ids
    )


async def go_handles(
    hub: str, storage: str, container: str, last: int, partition_ids: Iterable[str]
) -> Handled:
    """Handle with ``azeventhubs`` and its checkpoint store in blobs."""
    return await asyncio.to_thread(_sdk_handles, "go", hub, storage, container, last, partition_ids)


def _sdk_handles(
    sdk: str, hub: str, storage: str, container: str, last: int, partition_ids: Iterable[str]
) -> Handled:
    connection, _, name = hub.rpartition("EntityPath=")
    with ForeignClient(sdk) as client:
        client.connect(connection, name)
        client.ask(
            "process",
            storage=storage,
            container=container,
            interval_s=0.5,
            expiration_s=12,
            last=last,
        )
        end_s = time.monotonic() + TIMEOUT_S
        while not {(partition_id, last) for partition_id in partition_ids} <= {*client.handled}:
            assert time.monotonic() < end_s, client.said
            time.sleep(0.05)
        client.ask("stop")
        return client.handled


async def ours_handles(
    source: EventSource,
    store: CheckpointStore,
    last: int,
    partition_ids: Iterable[str],
) -> Handled:
    """Handle with this library."""
    handled, left, over = Handled(), set(partition_ids), asyncio.Event()

    class Handler(PartitionHandler):
        async def process_events(self, context, events):
            for event in events:
                handled.append((context.partition_id, event.sequence_number))
                if event.sequence_number == last:
                    left.discard(context.partition_id)
            if not left:
                over.set()

    processor = EventProcessor(
        source=source,
        store=store,
        handler=Handler,
        config=EventProcessorConfig(
            load_balancing_interval=timedelta(seconds=0.5),
            ownership_expiration=timedelta(seconds=12),
            checkpoint_policy=CheckpointPolicy(interval=timedelta(seconds=0.2)),
        ),
    )
    async with processor:
        async with asyncio.timeout(TIMEOUT_S):
            await over.wait()
    return handled
