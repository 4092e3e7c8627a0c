"""A group on PostgreSQL balances at once: its members are told of changes."""

import asyncio
import uuid
from datetime import timedelta

from checkpointstores.postgres import PostgresCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc.sources.memory import MemoryEventSource, MemoryHub

CONFIG = EventProcessorConfig(
    load_balancing_interval=timedelta(minutes=10),
    rebalance_interval=timedelta(seconds=0.2),
    ownership_expiration=timedelta(hours=1),
)
"""Without notices, nothing would happen for ten minutes."""


class Handler(PartitionHandler):
    """Handles nothing."""

    async def process_event(self, context, event):
        """Do nothing."""


async def until_owned(*owned):
    """Return when each processor owns so many partitions."""
    while any(len(p.statistics().owned) != count for p, count in owned):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_members_that_come_and_leave_are_noticed_without_a_poll(postgres):
    """A joiner gets its share, and the one that stays gets all of it back."""
    schema, hub = f"s{uuid.uuid4().hex}", MemoryHub(8)
    async with PostgresCheckpointStore(postgres.dsn, schema=schema, create_schema=True):
        pass
    first, second = (
        EventProcessor(
            source=MemoryEventSource(hub),
            store=PostgresCheckpointStore(postgres.dsn, schema=schema),
            handler=Handler,
            config=CONFIG,
        )
        for _ in range(2)
    )
    async with first:
        await until_owned((first, 8))
        async with second:
            await until_owned((first, 4), (second, 4))
        await until_owned((first, 8))

    assert first.statistics().lost_count == second.statistics().lost_count == 0
