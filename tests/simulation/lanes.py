"""Worlds with key lanes: events of different keys are handled concurrently, each key in order."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from eventproc import (
    FailureAction,
    FailurePolicy,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.models import CheckpointUpdate
from tests.simulation.actor import Actor
from tests.simulation.handlers import CountingHandler
from tests.simulation.invariants import Call, Invariants
from tests.simulation.scenario import Scenario
from tests.simulation.world import World

KEY_COUNT = 5


def key_selector(event: ReceivedEvent) -> str:
    """Return the key of an event."""
    return f"k{event.sequence_number % KEY_COUNT}"


def with_lanes(scenario: Scenario, seed: int) -> Scenario:
    """The same scenario with key lanes, sometimes with attempts or deliveries counted."""
    rng = Random(f"lanes/{seed}")
    config = replace(
        scenario.config,
        key_concurrency=rng.choice([2, 3, 8]),
        key_selector=key_selector,
        max_in_flight_events=rng.choice([3, 20, 1000]),
        failure_policy=FailurePolicy(
            attempts_max=rng.choice([None, 2]),
            action=FailureAction.DEAD_LETTER,
            deliveries_max=rng.choice([None, 1000]),
        ),
    )
    return replace(scenario, config=config)


class LaneInvariants(Invariants):
    """Invariants per key, instead of per partition."""

    def checkpointed(self, actor: Actor, update: CheckpointUpdate) -> None:
        """Every completed range above the position must be handled."""
        super().checkpointed(actor, update)
        counts: Mapping[int, int] = self.handled.get(update.partition_id, {})
        missing = [
            number
            for found in update.completed
            for number in range(found.first, found.last + 1)
            if not counts.get(number)
        ]
        if missing:
            self.report("gap", f"{update.partition_id} says that {missing[:5]} are done")

    def begun(self, call: Call, events: Sequence[ReceivedEvent]) -> None:
        """A handler was called with events of one key."""
        context = call.context
        partition_id = context.partition_id
        keys = {key_selector(event) for event in events}
        self.note(f"{partition_id} gets {[e.sequence_number for e in events]}", call.actor.name)
        if not context.is_owned:
            self.report("fence", f"{call.actor.name} got {partition_id} without a lease")
        if len(keys) != 1:
            self.report("keys", f"{call.actor.name} got {keys} in one call")
        place = f"{partition_id}/{min(keys)}"
        busy = self._calls.setdefault(place, [])
        for other in busy:
            self._check_overlap(call, other)
        holding = self._holding.get(partition_id)
        if holding is not None and holding.actor is call.actor:
            holding.has_served = True
        busy.append(call)
        self._calls.setdefault(partition_id, []).append(call)

    def ended(self, call: Call) -> None:
        """A call of a handler ended."""
        for calls in self._calls.values():
            if call in calls:
                calls.remove(call)

    def done(self, partition_id: str, event: ReceivedEvent) -> None:
        """An event completed, so every earlier event of its key must be completed."""
        before = event.sequence_number - KEY_COUNT
        counts: Mapping[int, int] = self.handled.get(partition_id, {})
        if before >= 0 and not counts.get(before):
            self.report("order", f"{partition_id}: {event.sequence_number} before {before}")
        super().done(partition_id, event)


class KeyedHandler(CountingHandler):
    """Reports what it handles to the invariants, for each key, and has no state."""

    async def _handle(self, context: PartitionContext, event: ReceivedEvent) -> None:
        behaviour, chance = self._behaviour, self._rng.random
        await asyncio.sleep(behaviour.seconds_per_event)
        if behaviour.failure_rate and chance() < behaviour.failure_rate:
            raise RuntimeError("failed on purpose")
        place = (context.partition_id, event.sequence_number)
        await behaviour.apply_failure(self._actor, place, self._invariants)
        self._invariants.done(context.partition_id, event)
        if chance() < 0.5:
            context.done(event)
        elif chance() < behaviour.checkpoint_rate:
            await context.checkpoint(event)


class LanesWorld(World):
    """A world whose events have keys."""

    invariants_class = LaneInvariants

    def make_handler(self, actor: Actor) -> PartitionHandler:
        """Make a handler that checks the order of keys."""
        return KeyedHandler(actor, self.behaviour, self.invariants, self.rng)
