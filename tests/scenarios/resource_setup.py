"""Several resource processors on virtual time, and when each resource was used."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    HeldResource,
    ResourceHandler,
    ResourceProcessor,
    ResourceProcessorConfig,
    Resources,
)
from eventproc.models import ConsumerGroup
from eventproc.testing import FaultyCheckpointStore

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Use:
    """One call of ``hold``."""

    name: str
    owner_id: str
    epoch: int
    began_s: float
    ended_s: float = float("inf")
    events: list[str] = field(default_factory=list)


class ResourceSetup:
    """A store, a list of resources that may change, and what was held when."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.is_failing = False
        self.loop = asyncio.get_running_loop()
        self.account = MemoryAccount(now=lambda: BEGIN + timedelta(seconds=self.loop.time()))
        self.group = ConsumerGroup.of_resources("keys")
        self.uses: list[Use] = []
        self.store_by_owner: dict[str, FaultyCheckpointStore] = {}

    async def list_names(self) -> list[str]:
        """List the resources that exist now."""
        if self.is_failing:
            raise OSError("no list")
        return list(self.names)

    def processor(self, owner_id, handler=None, *, telemetry=None, **settings) -> ResourceProcessor:
        """A processor that is not started yet; *settings* go to its config."""
        store = FaultyCheckpointStore(MemoryCheckpointStore(self.account), Random(owner_id))
        self.store_by_owner[owner_id] = store
        return ResourceProcessor(
            resources=Resources(self.list_names, every=timedelta(seconds=5)),
            store=store,
            group="keys",
            handler=handler or (lambda: Using(self)),
            owner_id=owner_id,
            config=ResourceProcessorConfig(**{"uses_store_thread": False, **settings}),
            rng=Random(owner_id),
            telemetry=telemetry,
        )

    def held(self) -> dict[str, list[str]]:
        """The names that each processor uses now."""
        found = defaultdict(list)
        for use in self.uses:
            if use.ended_s == float("inf"):
                found[use.owner_id].append(use.name)
        return {owner_id: sorted(names) for owner_id, names in found.items()}

    def uses_of(self, name: str) -> list[Use]:
        """The calls of ``hold`` of one resource, in order."""
        return [use for use in self.uses if use.name == name]

    def check(self) -> None:
        """No resource is used twice at a time, and each new holder has a higher epoch."""
        for name in {use.name for use in self.uses}:
            uses = self.uses_of(name)
            for before, after in pairwise(uses):
                assert before.ended_s <= after.began_s, (before, after)
                if before.owner_id != after.owner_id:
                    assert before.epoch < after.epoch, (before, after)
                else:
                    assert before.epoch <= after.epoch, (before, after)


class Using(ResourceHandler):
    """Notes when it holds its resource."""

    def __init__(self, setup: ResourceSetup, close_s: float = 0.0) -> None:
        self.setup = setup
        self.close_s = close_s

    async def hold(self, held: HeldResource) -> None:
        """Hold until cancelled; then take ``close_s`` to close."""
        loop = self.setup.loop
        use = Use(held.name, held.owner_id, held.epoch, loop.time())
        self.setup.uses.append(use)
        try:
            await self.use(held, use)
        finally:
            await asyncio.sleep(self.close_s)
            use.ended_s = loop.time()

    async def use(self, held: HeldResource, use: Use) -> None:
        """Do nothing for ever."""
        await asyncio.get_running_loop().create_future()
