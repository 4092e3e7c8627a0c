"""A world whose processors hold named resources in place of partitions."""

import asyncio
from dataclasses import dataclass, field, fields
from typing import Any, Final

from eventproc import (
    HeldResource,
    ResourceHandler,
    ResourceProcessor,
    ResourceProcessorConfig,
    Resources,
)
from eventproc._group.config import GroupConfig
from eventproc.models import ConsumerGroup
from tests.simulation.actor import Actor
from tests.simulation.invariants import Call
from tests.simulation.nodes import CheckedNode
from tests.simulation.pairs.world import PairsInvariants, PairsWorld

GROUP: Final = "keys"


@dataclass(frozen=True, slots=True)
class Held:
    """What the invariants ask of the context of a call."""

    held: HeldResource

    @property
    def partition_id(self) -> str:
        return self.held.name

    @property
    def is_owned(self) -> bool:
        return self.held.is_held


@dataclass
class HoldInvariants(PairsInvariants):
    """Each resource has one holder, and each holder a higher token than those before it."""

    _tokens: dict[str, tuple[int, Actor]] = field(default_factory=dict)
    """For each resource, the highest token and its holder."""

    def hold_begun(self, call: Call, held: HeldResource) -> None:
        """``hold`` was called."""
        self.note(f"holds {held.name} with {held.epoch}", call.actor.name)
        if not held.is_held:
            self.report("fence", f"{call.actor.name} got {held.name} without a lease")
        before, holder = self._tokens.get(held.name, (-1, call.actor))
        if held.epoch < before or (held.epoch == before and holder is not call.actor):
            self.report("token", f"{call.actor.name} got {held.name} with {held.epoch}")
        self._tokens[held.name] = held.epoch, call.actor
        calls = self._calls.setdefault(held.name, [])
        for other in calls:
            self._check_overlap(call, other)
        calls.append(call)


class HoldingHandler(ResourceHandler):
    """Holds until it is cancelled."""

    def __init__(self, actor: Actor, invariants: HoldInvariants) -> None:
        self._actor = actor
        self._invariants = invariants

    async def hold(self, held: HeldResource) -> None:
        call = Call(self._actor, Held(held))  # type: ignore[arg-type]
        self._invariants.hold_begun(call, held)
        try:
            await asyncio.Event().wait()
        finally:
            self._invariants.ended(call)


class ResourcesWorld(PairsWorld):
    """Processors share as many resources as the hub has partitions, with the same ids."""

    invariants_class = HoldInvariants
    invariants: HoldInvariants

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.stop_publishing()
        self.group = ConsumerGroup.of_resources(GROUP)

    def start(
        self, owner_id: str, *, is_supervised: bool = True, deployment_id: str = ""
    ) -> CheckedNode:
        process, connection, rng = self._prepare(owner_id, hands_over=True)
        shared = {each.name for each in fields(GroupConfig)}
        settings = {name: getattr(self.config, name) for name in shared}
        processor = ResourceProcessor(
            resources=Resources(self.hub.partition_ids()),
            store=connection,
            group=GROUP,
            handler=lambda: HoldingHandler(connection.actor, self.invariants),
            owner_id=owner_id,
            config=ResourceProcessorConfig(**{**settings, "deployment_id": deployment_id}),
            rng=rng,
            identity_bits=rng.getrandbits,
            clock=process.boot_s,
        )
        node = self._add(process, processor, connection)
        node.deployment_id = deployment_id
        node.run(self._run(node, processor, is_supervised=is_supervised))
        return node
