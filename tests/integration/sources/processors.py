"""Processors of one process on a real broker, and what they handled."""

import asyncio
from datetime import timedelta

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    Backoff,
    CheckpointPolicy,
    EventPosition,
    EventProcessor,
    EventProcessorConfig,
    PartitionHandler,
)


class Fleet:
    """Processors of one group on one hub, and what they handled."""

    def __init__(self, hub):
        self.hub = hub
        self.account = MemoryAccount()
        self.handled: list[tuple[str, bytes]] = []
        self.events = []

    def processor(self, owner_id, handler=None, *, source=None, sink=None, **settings):
        fleet = self

        class Noting(PartitionHandler):
            async def process_events(self, context, events):
                fleet.events += events
                fleet.handled += [(context.partition_id, event.body) for event in events]

        return EventProcessor(
            source=source or self.hub.source(),
            store=MemoryCheckpointStore(self.account),
            handler=handler or Noting,
            dead_letters=sink,
            owner_id=owner_id,
            config=EventProcessorConfig(
                **{
                    "uses_store_thread": False,
                    "load_balancing_interval": timedelta(seconds=0.2),
                    "rebalance_interval": timedelta(seconds=0.05),
                    "ownership_expiration": timedelta(seconds=1.5),
                    "receiver_backoff": Backoff(initial=timedelta(seconds=0.05)),
                    "initial_position": EventPosition.earliest(),
                    "checkpoint_policy": CheckpointPolicy(max_events=10),
                    **settings,
                }
            ),
        )

    async def until(self, count):
        await until(lambda: len(set(self.handled)) >= count)


class KafkaFleet(Fleet):
    """Processors on one topic."""

    async def publish(self, partition, *bodies, **message):
        await asyncio.to_thread(self.hub.publish, partition, *bodies, **message)


def numbered(first, end):
    return [b"%d" % number for number in range(first, end)]


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - threads and handlers set no events
            await asyncio.sleep(0.01)


def is_balanced(*processors):
    """Return whether all three partitions are shared."""
    return sorted(len(p.statistics().owned) for p in processors) == [1, 2]


def lag_of(processor, partition_id):
    pumps = {pump.partition_id: pump for pump in processor.statistics().pumps}
    return pumps[partition_id].lag if partition_id in pumps else None


def events_named(caplog, name):
    return [record for record in caplog.records if vars(record).get("event") == name]
