"""A process that serves a hub and writes a journal; some events kill it, and some fail.

Arguments: connection string of the hub, the store (an SQLite file, or a container and the storage's
connection string after a blank), owner id, path of the journal, settings as JSON: those of the
configuration, and ``pace_s`` (the time that an event takes).
"""

import asyncio
import json
import os
import sys
from datetime import timedelta

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    CheckpointPolicy,
    CheckpointStore,
    DeadLetter,
    EventProcessor,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.dead_letters import FunctionDeadLetterSink
from eventproc.sources.eventhubs import EventHubSource
from tests.integration.delivery.journal import journal_writer

CONN_STR, STORE, OWNER_ID, JOURNAL, GIVEN = sys.argv[1:]
SETTINGS = json.loads(GIVEN)
PACE_S = SETTINGS.pop("pace_s", 0.0005)
record = journal_writer(JOURNAL, OWNER_ID)


def key_selector(event: ReceivedEvent) -> str:
    """Return a property: publishing with partition keys would need a batch for each key."""
    return str(event.properties["key"])


class Worker(PartitionHandler):
    """Handles the event, fails or kills its process, as the event's body says."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Do what the body says."""
        what = event.body.decode()
        if what == "die":
            record("died", context.partition_id, event.sequence_number)
            os._exit(1)
        if what == "fail":
            raise ValueError("cannot be handled")
        if PACE_S:
            await asyncio.sleep(PACE_S)
        record("handled", context.partition_id, event.sequence_number)


async def store_dead_letter(letter: DeadLetter) -> None:
    """Record a dead letter."""
    fields = letter.details()
    details = [fields[name] for name in ("attempt_count", "error_type", "error_message")]
    record("dead-lettered", letter.partition_id, letter.event.sequence_number, *details)


def make_store() -> CheckpointStore:
    """Return the store of the arguments."""
    container, _, conn_str = STORE.partition(" ")
    if conn_str:
        return BlobCheckpointStore.from_connection_string(
            conn_str, container=container, request_timeout=timedelta(seconds=1)
        )
    return SqliteCheckpointStore(STORE)


async def main() -> None:
    """Serve until standard input ends."""
    config = EventProcessorConfig(
        load_balancing_interval=timedelta(seconds=0.3),
        rebalance_interval=timedelta(seconds=0.05),
        ownership_expiration=timedelta(seconds=2),
        shutdown_timeout=timedelta(seconds=10),
        checkpoint_policy=CheckpointPolicy(max_events=100, interval=timedelta(seconds=0.2)),
        failure_policy=FailurePolicy(
            attempts_max=2, action=FailureAction.DEAD_LETTER, deliveries_max=3
        ),
        key_selector=key_selector,
        **SETTINGS,
    )
    processor = EventProcessor(
        source=EventHubSource.from_connection_string(CONN_STR),
        store=make_store(),
        handler=Worker,
        dead_letters=FunctionDeadLetterSink(store_dead_letter),
        owner_id=OWNER_ID,
        config=config,
    )
    async with processor:
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
