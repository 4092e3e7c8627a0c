"""Files that the emulator captured, in a folder and in Azurite, and the hub that deleted them."""

import asyncio
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import fastavro
import pytest
from azure.storage.blob import ContainerClient

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, PartitionHandler
from eventproc.emulator import (
    CaptureConfiguration,
    EmulatorConfiguration,
    EmulatorServer,
    EventHubsEmulator,
    Retention,
    hubs_of,
)
from eventproc.emulator._amqp.message import EventDraft
from eventproc.errors import ConfigurationError
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.sources.capture import BlobCaptureFiles, CapturedHub, FolderCaptureFiles
from eventproc.sources.eventhubs import EventHubSource
from tests.integration.capture.conftest import publish

SOON = timedelta(seconds=30)
BODY = b"\x00\x53\x75\xa0\x01x"
"""A section of AMQP."""


def source_of(emulator, files):
    text = emulator.connection_string_for("orders")
    return CapturedHub(EventHubSource.from_connection_string(text), files)


def file_count(folder):
    return len(list(folder.rglob("*.avro")))


def event_count(folder):
    return sum(
        len(list(fastavro.reader(io.BytesIO(f.read_bytes())))) for f in folder.rglob("*.avro")
    )


async def until(count_in, folder, least):
    """Return when so many are there."""
    while await asyncio.to_thread(count_in, folder) < least:  # noqa: ASYNC110 - files
        await asyncio.sleep(0.05)


async def read(source, partition_id, count, position=None):
    """Return the next events from the first one on."""
    async with source:
        receiver = await source.open_receiver(
            "$Default", partition_id, position or EventPosition.earliest()
        )
        found: list[ReceivedEvent] = []
        while len(found) < count:
            found += await receiver.receive(events_max=100, wait_max=SOON)
    return found


async def test_every_event_comes_once_from_files_and_then_from_the_hub(emulator, folder):
    await publish(emulator, "0", 0, 400)
    await until(event_count, folder, 400)
    await publish(emulator, "0", 400, 440)
    events = await read(source_of(emulator, FolderCaptureFiles(folder)), "0", 440)

    assert [event.sequence_number for event in events] == list(range(440))
    assert [event.body for event in events] == [b"%d" % number for number in range(440)]
    # The first ones are of files, the last ones are not.
    for event in (events[0], events[-2]):
        assert event.content_type == "text/plain"
        assert event.properties["number"] == event.sequence_number
    assert events[0].properties["even"] == 1


async def test_a_container_is_read_as_a_folder_is(emulator, folder, storage, container):
    await publish(emulator, "1", 0, 300)
    emulator.stop()  # What is not captured yet is written then.
    emulator.start()
    with ContainerClient.from_connection_string(storage, container) as client:
        client.upload_blob("127.0.0.1/orders/1/2026", b"")  # As a folder in Data Lake Storage.
        for path in folder.rglob("*.avro"):
            name = path.relative_to(folder).as_posix()
            client.upload_blob(name, path.read_bytes())
    files = BlobCaptureFiles.from_connection_string(storage, container)
    events = await read(source_of(emulator, files), "1", 300)
    later = EventPosition.from_enqueued_time(events[120].enqueued_time)
    again = await read(source_of(emulator, files), "1", 1, later)

    assert [event.sequence_number for event in events] == list(range(300))
    assert again[0].enqueued_time == events[120].enqueued_time


async def test_a_container_that_does_not_exist_is_refused(emulator, storage):
    files = BlobCaptureFiles.from_connection_string(storage, "no-such-container")

    with pytest.raises(ConfigurationError, match="container of Capture files"):
        await source_of(emulator, files).open()


async def test_a_group_goes_on_in_the_files_that_were_written_while_it_was_away(emulator, folder):
    """Its checkpoints are of the hub, which has deleted the events after them."""
    store_account = MemoryCheckpointStore().account
    seen: dict[str, list[int]] = {"0": [], "1": []}
    done = asyncio.Event()

    class Orders(PartitionHandler):
        async def process_events(self, context, events):
            seen[context.partition_id] += [event.sequence_number for event in events]
            if min(map(len, seen.values())) >= end:
                done.set()

    for first, end in ((0, 300), (300, 1000)):
        done.clear()
        await asyncio.gather(*(publish(emulator, p, first, end) for p in ("0", "1")))
        emulator.stop()  # What is not captured yet is written then.
        emulator.start()
        async with EventProcessor(
            source=source_of(emulator, FolderCaptureFiles(folder)),
            store=MemoryCheckpointStore(store_account),
            handler=Orders,
        ):
            await asyncio.wait_for(done.wait(), 60)

    assert seen == {"0": list(range(1000)), "1": list(range(1000))}


async def test_windows_without_events_become_files_and_do_no_harm(emulator, folder):
    await until(file_count, folder, 6)
    await publish(emulator, "0", 0, 100)
    await until(event_count, folder, 100)

    events = await read(source_of(emulator, FolderCaptureFiles(folder)), "0", 100)

    assert [event.sequence_number for event in events] == list(range(100))


async def test_a_stop_waits_for_the_file_that_is_being_written(tmp_path):
    """The disk is slow: the write is still waiting for a thread when the emulator stops."""
    folder = tmp_path / "captured"
    capture = CaptureConfiguration(folder=folder, interval=timedelta(milliseconds=20))
    configuration = EmulatorConfiguration(hubs=hubs_of({"orders": 1}), port=0, capture=capture)
    free = threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    async with EmulatorServer(configuration) as server:
        server.namespace.hub("orders").partitions[0].publish([EventDraft(b"", b"", 0, BODY, None)])
        busy = loop.run_in_executor(None, free.wait)
        await asyncio.sleep(0.3)
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0.1)
        free.set()
        await asyncio.gather(stopping, busy)

        assert event_count(folder) == 1


async def test_files_of_an_emulator_that_ended_in_the_same_second_are_kept(tmp_path):
    """Names have whole seconds."""
    folder = tmp_path / "captured"
    capture = CaptureConfiguration(folder=folder, interval=timedelta(hours=1))
    configuration = EmulatorConfiguration(hubs=hubs_of({"orders": 1}), port=0, capture=capture)
    for _ in range(3):
        async with EmulatorServer(configuration, clock=lambda: 1_000_000_000_000) as server:
            server.namespace.hub("orders").partitions[0].publish(
                [EventDraft(b"", b"", 0, BODY, None)]
            )

    assert event_count(folder) == file_count(folder) == 3


async def test_what_a_directory_kept_is_captured_again_and_read_once(tmp_path):
    """After a restart of the emulator's process."""
    folder = tmp_path / "captured"
    capture = CaptureConfiguration(folder=folder, interval=timedelta(hours=1), writes_empty=False)
    settings = {"capture": capture, "directory": tmp_path / "events", "port": 0}
    for first in (0, 100):
        with EventHubsEmulator({"orders": 2}, retention=Retention(), **settings) as emulator:
            await publish(emulator, "0", first, first + 100)
    retention = Retention(events_max=10)
    with EventHubsEmulator({"orders": 2}, retention=retention, **settings) as emulator:
        events = await read(source_of(emulator, FolderCaptureFiles(folder)), "0", 200)

    assert [event.sequence_number for event in events] == list(range(200))
