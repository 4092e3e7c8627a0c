"""A processor on a hub in memory, and questions to its health server. In real time."""

import asyncio
from datetime import timedelta
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc._base.http.address import Answer
from eventproc._base.http.client import fetch
from eventproc.health import HealthServer
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.telemetry import Telemetry
from tests.unit.eventproc._delivery.test_handler_threads import SHORT

LONG = timedelta(seconds=20)
SECOND = timedelta(seconds=1)


class Idle(PartitionHandler):
    """Does nothing with events."""

    async def process_event(self, context, event):
        """Do nothing."""


class Setup:
    """A hub with two partitions, and a health server."""

    def __init__(self, **settings: Any) -> None:
        self.hub = MemoryHub(partition_count=2)
        self.health = HealthServer("0", **settings)
        self.telemetry = Telemetry(meter_provider=MeterProvider())

    def processor(self, handler=Idle, *, store=None, owner_id="a", **settings) -> EventProcessor:
        """Return a processor that is not started yet; *settings* go to its config."""
        return EventProcessor(
            source=MemoryEventSource(self.hub),
            store=store or MemoryCheckpointStore(),
            handler=handler,
            owner_id=owner_id,
            health=self.health,
            telemetry=self.telemetry,
            config=EventProcessorConfig(**{**SHORT, **settings}),
        )

    async def ask(self, path: str) -> Answer:
        """Return the answer, which must come."""
        assert self.health.address is not None, "nothing is served"
        answer = await fetch(self.health.address, path, LONG)
        assert answer is not None, "nothing answers"
        return answer

    async def entry(self, path: str) -> dict[str, Any]:
        """Return the entry of the only processor."""
        body: Any = (await self.ask(path)).body
        (entry,) = body["processors"]
        return dict(entry)

    async def serves(self) -> None:
        """Wait until both partitions are served."""
        async with asyncio.timeout(LONG.total_seconds()):
            while (  # noqa: ASYNC110 - it is asked
                len((await self.entry("/partitions"))["partitions"]) < 2
                or (await self.ask("/ready")).status != 200
            ):
                await asyncio.sleep(0.02)

    async def becomes(self, path: str, status: int) -> dict[str, Any]:
        """Wait until the path has this status, and return the entry of the only processor."""
        async with asyncio.timeout(LONG.total_seconds()):
            while (await self.ask(path)).status != status:  # noqa: ASYNC110 - it is asked
                await asyncio.sleep(0.02)
        return await self.entry(path)
