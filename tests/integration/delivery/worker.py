"""A process that serves a hub: some events kill it, others cannot be handled, and it tells of each.

Arguments: connection string of the hub, the store (an SQLite file, or a container and the storage's
connection string behind a blank), owner id, file to tell in, settings as JSON: those of the
configuration, ``pace_s`` (what an event takes) and ``counts`` (whether to keep a state).
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
from tests.integration.delivery.telling import teller

CONN_STR, STORE, OWNER_ID, STORY, GIVEN = sys.argv[1:]
SETTINGS = json.loads(GIVEN)
PACE_S = SETTINGS.pop("pace_s", 0.0005)
COUNTS = SETTINGS.pop("counts", False)
tell = teller(STORY, OWNER_ID)


def key_selector(event: ReceivedEvent) -> str:
    """A property: to send with partition keys takes a batch for each."""
    return str(event.properties["key"])


class Worker(PartitionHandler):
    """Handles, fails or dies, as the event says."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Do what the body says."""
        what = event.body.decode()
        if what == "die":
            tell("died", context.partition_id, event.sequence_number)
            os._exit(1)
        if what == "fail":
            raise ValueError("nobody can handle this")
        if PACE_S:
            await asyncio.sleep(PACE_S)
        if COUNTS:
            count, total = json.loads(context.state or b"[0, 0]")
            context.state = json.dumps([count + 1, total + event.sequence_number]).encode()
        tell("handled", context.partition_id, event.sequence_number)


async def bury(letter: DeadLetter) -> None:
    """Take a dead letter."""
    details = letter.details()
    told = [details[name] for name in ("attempt_count", "error_type", "error_message")]
    tell("buried", letter.partition_id, letter.event.sequence_number, *told)


def make_store() -> CheckpointStore:
    """The store that was asked for."""
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
        dead_letters=FunctionDeadLetterSink(bury),
        owner_id=OWNER_ID,
        config=config,
    )
    async with processor:
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
