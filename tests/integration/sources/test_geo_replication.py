"""Geo-replication is turned on for a hub: old offsets are refused, and no event is lost."""

import asyncio
import logging
from collections import Counter
from datetime import timedelta

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    Backoff,
    CheckpointPolicy,
    EventPosition,
    EventProcessor,
    EventProcessorConfig,
    PartitionHandler,
    SourceRejectedError,
)
from eventproc.emulator import EventHubsEmulator
from eventproc.models import ConsumerGroup
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource, ReceivePath
from tests.integration.sources.receive_paths import RECEIVE_PATHS

LONG = timedelta(minutes=10)
SOON = timedelta(seconds=10)


@pytest.fixture(name="emulator")
def _emulator():
    with EventHubsEmulator({"orders": 1}) as emulator:
        yield emulator


def publish(emulator, *bodies):
    with EventHubProducerClient.from_connection_string(
        emulator.connection_string_for("orders")
    ) as producer:
        producer.send_batch([EventData(body) for body in bodies], partition_id="0")


def source_on(emulator, receive_path=ReceivePath.DIRECT):
    return EventHubSource.from_connection_string(
        emulator.connection_string_for("orders"),
        options=EventHubOptions(receive_path=receive_path),
    )


def processor(emulator, account, handled, receive_path):
    class Counting(PartitionHandler):
        async def process_events(self, context, events):
            context.state = b"%d" % (int(context.state or b"0") + len(events))
            handled.extend(event.body for event in events)

    return EventProcessor(
        source=source_on(emulator, receive_path),
        store=MemoryCheckpointStore(account),
        handler=Counting,
        owner_id="a",
        config=EventProcessorConfig(
            uses_store_thread=False,
            initial_position=EventPosition.earliest(),
            checkpoint_policy=CheckpointPolicy(max_events=1),
            receiver_backoff=Backoff(initial=timedelta(seconds=0.05)),
        ),
    )


async def until(handled, count):
    async with asyncio.timeout(30):
        while len(handled) < count:  # noqa: ASYNC110 - a handler sets no event
            await asyncio.sleep(0.01)


async def checkpoint_of(emulator, account):
    async with MemoryCheckpointStore(account) as store, source_on(emulator) as source:
        group = ConsumerGroup(
            fully_qualified_namespace=source.fully_qualified_namespace,
            eventhub_name="orders",
            name="$Default",
        )
        return await store.read_checkpoint(group, "0")


@pytest.mark.parametrize("receive_path", RECEIVE_PATHS)
async def test_a_group_continues_by_sequence_number(emulator, caplog, receive_path):
    """Each event is handled once, with the state; it is logged once, and the checkpoint gets an
    offset."""
    account = MemoryAccount()
    handled: list[bytes] = []
    await asyncio.to_thread(publish, emulator, b"0", b"1", b"2")
    async with processor(emulator, account, handled, receive_path):
        await until(handled, 3)
    before = await checkpoint_of(emulator, account)
    emulator.refuse_offsets(LONG)
    await asyncio.to_thread(publish, emulator, b"3", b"4")
    async with processor(emulator, account, handled, receive_path):
        await until(handled, 5)
    after = await checkpoint_of(emulator, account)
    records = [
        record for record in caplog.records if getattr(record, "event", "") == "offset_refused"
    ]
    warnings = [record for record in records if record.levelno > logging.DEBUG]

    assert Counter(handled) == {b"%d" % number: 1 for number in range(5)}
    assert len(warnings) == 1
    assert (warnings[0].offset, warnings[0].sequence_number) == (before.offset, 2)
    assert (after.sequence_number, after.state) == (4, b"5")
    assert after.offset not in {None, before.offset}


async def test_an_old_offset_without_a_sequence_number_is_refused(emulator):
    """Some SDKs write such checkpoints; the error names the remedy."""
    await asyncio.to_thread(publish, emulator, b"0", b"1")
    emulator.refuse_offsets(LONG)
    async with source_on(emulator) as source:
        with pytest.raises(SourceRejectedError, match="eventproc checkpoints set"):
            await source.open_receiver("$Default", "0", EventPosition.from_offset("0"))


async def test_a_refused_offset_is_logged_once_for_each_partition(emulator, caplog):
    """Until events come, the checkpoint keeps the old offset, and each opening is refused."""
    await asyncio.to_thread(publish, emulator, b"0", b"1")
    emulator.refuse_offsets(LONG)
    position = EventPosition.from_offset("0", sequence_number=0)
    bodies = []
    async with source_on(emulator) as source:
        for _ in range(2):
            receiver = await source.open_receiver("$Default", "0", position)
            bodies += [e.body for e in await receiver.receive(events_max=9, wait_max=SOON)]
            await receiver.close()

    assert bodies == [b"1", b"1"]
    assert [
        record.levelname
        for record in caplog.records
        if getattr(record, "event", "") == "offset_refused"
    ] == ["WARNING"]
