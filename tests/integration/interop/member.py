"""A processor in a process of its own, which prints what it does as lines of JSON.

``python -m tests.integration.interop.member SDK CONNECTION_STRING HUB GROUP STORAGE CONTAINER
INTERVAL_S EXPIRATION_S``; SDK is ``ours`` or ``python``. An interval of zero stands for the SDK's
defaults; ours then has the expiration that ``docs/operations.md`` advises beside every SDK. It ends
when its standard input does.
"""

import asyncio
import json
import sys
from datetime import timedelta
from threading import Lock

from azure.eventhub.aio import EventHubConsumerClient
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore as AzureStore

from checkpointstores.blob import BlobCheckpointStore
from eventproc import CheckpointPolicy, EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc.models import CloseReason, WriteOutcome
from eventproc.sources.eventhubs import EventHubSource

OURS_BESIDE_DEFAULTS_S = (10.0, 180.0)
PYTHON_INTERVAL_S = 30.0


SAYING = Lock()


def say(**line: object) -> None:
    """Print a line, of any thread: the store has its own."""
    with SAYING:
        print(json.dumps(line), flush=True)


def say_handled(partition_id, events):
    """Print a line for each event."""
    for event in events:
        say(handled=partition_id, sequence_number=event.sequence_number)


class Handler(PartitionHandler):
    """Says what happens."""

    async def initialize(self, context):
        """Say so."""
        say(opened=context.partition_id)

    async def process_events(self, context, events):
        """Say so."""
        say_handled(context.partition_id, events)

    async def close(self, context, reason):
        """Say so."""
        say(closed=context.partition_id, is_lost=reason is CloseReason.OWNERSHIP_LOST)


class Store(BlobCheckpointStore):
    """Says what it stored."""

    async def update_checkpoint(self, group, update):
        """Say so."""
        result = await super().update_checkpoint(group, update)
        if result.outcome is WriteOutcome.WON:
            say(checkpointed=update.partition_id, sequence_number=update.sequence_number)
        return result


async def until_input_ends():
    """Wait for the end of the standard input."""
    await asyncio.to_thread(sys.stdin.read)


async def ours(names, interval_s, expiration_s):
    """Run a processor of this library."""
    hub, name, group, storage, container = names
    if not interval_s:
        interval_s, expiration_s = OURS_BESIDE_DEFAULTS_S
    processor = EventProcessor(
        source=EventHubSource.from_connection_string(hub, eventhub_name=name),
        store=Store.from_connection_string(storage, container),
        handler=Handler,
        consumer_group=group,
        config=EventProcessorConfig(
            load_balancing_interval=timedelta(seconds=interval_s),
            ownership_expiration=timedelta(seconds=expiration_s),
            checkpoint_policy=CheckpointPolicy(interval=timedelta(seconds=0.2)),
        ),
    )
    async with processor:
        await until_input_ends()


async def python(names, interval_s, expiration_s):
    """Run the processor of ``azure-eventhub``."""
    hub, name, group, storage, container = names
    store = AzureStore.from_connection_string(storage, container)
    client = EventHubConsumerClient.from_connection_string(
        hub,
        group,
        eventhub_name=name,
        checkpoint_store=store,
        load_balancing_interval=interval_s or PYTHON_INTERVAL_S,
        partition_ownership_expiration_interval=expiration_s or None,
    )

    async def on_batch(context, events):
        say_handled(context.partition_id, events)
        if events:
            await context.update_checkpoint(events[-1])
            say(checkpointed=context.partition_id, sequence_number=events[-1].sequence_number)

    async def on_initialize(context):
        say(opened=context.partition_id)

    async def on_close(context, reason):
        say(closed=context.partition_id)

    async with store, client:
        receiving = asyncio.create_task(
            client.receive_batch(
                on_batch,
                on_partition_initialize=on_initialize,
                on_partition_close=on_close,
                max_wait_time=0.2,
                starting_position="-1",
            )
        )
        await until_input_ends()
        await client.close()
        await receiving


if __name__ == "__main__":
    sdk, *names, interval, expiration = sys.argv[1:]
    run = {"ours": ours, "python": python}[sdk]
    asyncio.run(run(names, float(interval), float(expiration)))
