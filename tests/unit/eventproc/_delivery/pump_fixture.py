"""One pump alone, over a hub and a store in memory, and a handler that notes when it is cut."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

from eventproc import CheckpointPolicy, PartitionContext
from eventproc._base.logs import get_logger
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.flow_control import RateLimiter
from eventproc._delivery.links import Links
from eventproc._delivery.partition_pump import PartitionPump
from eventproc._delivery.scope import PartitionIdentity
from eventproc._group.pumps.stop_scope import StopScope
from eventproc.models import CloseReason
from eventproc.ports import EventSource
from eventproc.sources.memory import MemoryEventSource
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.unit.eventproc._delivery.checkpoint_fixture import CheckpointFixture

SHUTDOWN_S = 100


async def _ready() -> None:
    """Nothing was prepared."""


class TimingHandler(Noting):
    """Takes *call_s* for each batch and *close_s* to close, and notes when it was called."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.call_s = self.close_s = 0.0
        self.is_cancellable = True
        self.initialized = False
        self.sizes: list[int] = []
        self.called_at_s: list[float] = []
        self.idle_at_s: list[float] = []
        self.cut_at_s: list[float] = []
        """When a call, or ``close``, was cancelled."""

        self.closed: list[CloseReason] = []
        self.context: PartitionContext | None = None

    async def initialize(self, context):
        """Note the context."""
        self.context = context
        self.initialized = True

    async def process_events(self, context, events):
        """Note the size of the batch and its events; after *call_s*."""
        self.sizes.append(len(events))
        self.called_at_s.append(asyncio.get_running_loop().time())
        await self._take(self.call_s)
        await super().process_events(context, events)
        context.done(events[-1])  # Also if the call was cancelled.

    async def on_idle(self, context):
        """Note the time."""
        self.idle_at_s.append(asyncio.get_running_loop().time())

    async def close(self, context, reason):
        """Note the reason."""
        self.closed.append(reason)
        await self._take(self.close_s)

    async def _take(self, for_s: float) -> None:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + for_s
        while True:
            try:
                await seconds(until_s - loop.time())
            except asyncio.CancelledError:
                self.cut_at_s.append(loop.time())
                if self.is_cancellable:
                    raise
            else:
                return


class PumpFixture:
    """A pump of partition 0, what it was given, and how it ended."""

    def __init__(self, **settings: Any) -> None:
        self.setup = Setup()
        self.checkpoints = CheckpointFixture(self.setup)
        self.handler = TimingHandler(self.setup)
        self.source: EventSource = MemoryEventSource(self.setup.hub)
        self.rate_limits: Sequence[RateLimiter] = ()
        self.remaining_s = 1e9
        self._settings = {
            "shutdown_timeout": timedelta(seconds=SHUTDOWN_S),
            "checkpoint_policy": CheckpointPolicy.manual(),
            **settings,
        }

    async def pump(self, *, is_forced: bool = False) -> PartitionPump:
        """Make the pump; a test runs it."""
        await self.checkpoints.store.open()
        await self.source.open()
        config = EventProcessorConfig(**self._settings)
        identity = PartitionIdentity(partition_id="0", group=self.setup.group, owner_id="a")
        return PartitionPump(
            identity,
            record=self.checkpoints.record("a"),
            handler=self.handler,
            links=Links(self.source, identity),
            dead_letters=None,
            rate_limits=self.rate_limits,
            stop=StopScope(lambda: self.remaining_s),
            ready=_ready,
            is_forced=is_forced,
            config=config,
            rng=Random(0),
            log=get_logger("eventproc.test"),
        )

    async def start(self) -> "RunningPump":
        """Start the pump, and let it begin to receive."""
        running = RunningPump(await self.pump())
        await seconds(1)
        return running


class RunningPump:
    """A pump that runs in a task."""

    def __init__(self, pump: PartitionPump) -> None:
        self.pump = pump
        self.task = asyncio.create_task(pump.run())

    async def end(
        self, reason: CloseReason = CloseReason.SHUTDOWN, *, within_s: float | None = None
    ) -> float:
        """End the pump; return how many seconds that took."""
        self.pump.end(reason, within=None if within_s is None else timedelta(seconds=within_s))
        return await self.ended()

    async def ended(self) -> float:
        """Wait until the pump has ended, whatever the reason; return the seconds that took."""
        before_s = asyncio.get_running_loop().time()
        await asyncio.wait([self.task], timeout=1000)
        assert self.task.done(), "it has not ended"
        return asyncio.get_running_loop().time() - before_s
