"""The handlers of a world: they count events, and inject failures."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from eventproc._group.pumps.stop_scope import TRUST_CHECK_MIN_S
from tests.simulation.actor import Actor
from tests.simulation.invariants import Call, Invariants

CHECKED_WITHIN_S = 1.2 * TRUST_CHECK_MIN_S
"""After the end of trust, the check of it runs within this time; clocks may run slow."""


@dataclass
class Behaviour:
    """How the handlers of a world behave; may change at any time."""

    seconds_per_event: float = 0.0
    failure_rate: float = 0.0
    checkpoint_rate: float = 0.0
    """How often a handler asks for a checkpoint after an event."""

    ignores_cancellation: bool = False
    """Whether they ignore cancellation."""

    ever_ignored_cancellation: bool = False
    """Whether they ever ignored cancellation: such a call may still be under way."""

    poison: set[tuple[str, int]] = field(default_factory=set)
    """Events on which every handler fails."""

    hanging: set[tuple[str, int]] = field(default_factory=set)
    """Events on which a handler hangs."""

    deadly: set[tuple[str, int]] = field(default_factory=set)
    """Events that kill the process."""

    kill: Callable[[Actor], None] = lambda _: None
    """Kills the process of an actor."""

    async def apply_failure(
        self, actor: Actor, place: tuple[str, int], invariants: Invariants
    ) -> None:
        """Apply the failure that an event causes."""
        if place in self.deadly:
            invariants.died(actor, place)
            self.kill(actor)
            await asyncio.Event().wait()
        if place in self.hanging:
            began_s, pause_count = invariants.now_s(), actor.pause_count
            try:
                await asyncio.Event().wait()
            finally:
                if actor.pause_count == pause_count and not actor.is_killed:
                    invariants.hung(actor, place, invariants.now_s() - began_s)
        if place in self.poison:
            raise RuntimeError("poison")


class CountingHandler(PartitionHandler):
    """Counts handled events in its state, and reports them to the invariants."""

    def __init__(
        self, actor: Actor, behaviour: Behaviour, invariants: Invariants, rng: Random
    ) -> None:
        self._actor = actor
        self._behaviour = behaviour
        self._invariants = invariants
        self._rng = rng

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle each event slowly, and fail as configured."""
        call = Call(self._actor, context)
        self._invariants.begun(call, events)
        try:
            for event in events:
                await self._handle(context, event)
        finally:
            self._invariants.ended(call)

    async def _handle(self, context: PartitionContext, event: ReceivedEvent) -> None:
        behaviour, chance = self._behaviour, self._rng.random
        context.state = str(int(context.state or b"0") + 1).encode()
        if behaviour.seconds_per_event:
            await self._take_time(context, behaviour.seconds_per_event)
        if behaviour.failure_rate and chance() < behaviour.failure_rate:
            raise RuntimeError("failed on purpose")
        place = (context.partition_id, event.sequence_number)
        await behaviour.apply_failure(self._actor, place, self._invariants)
        self._invariants.done(context.partition_id, event)
        if behaviour.checkpoint_rate and chance() < behaviour.checkpoint_rate:
            await context.checkpoint(event)

    async def _take_time(self, context: PartitionContext, seconds: float) -> None:
        if self._behaviour.ignores_cancellation:
            await _sleep_through_cancellation(seconds)
            return
        await asyncio.sleep(seconds)
        if not context.is_owned:  # If the trust ended just now, its check follows in a moment.
            await asyncio.sleep(CHECKED_WITHIN_S)
        if not self._behaviour.ever_ignored_cancellation:
            self._invariants.went_on(self._actor, context)


async def _sleep_through_cancellation(seconds: float) -> None:
    time = asyncio.get_running_loop().time
    until_s = time() + seconds
    while (left_s := until_s - time()) > 0:
        try:
            await asyncio.sleep(left_s)
        except asyncio.CancelledError:
            continue
