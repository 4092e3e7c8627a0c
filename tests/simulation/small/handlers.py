"""The handlers of a small world: they also report why they were closed."""

from eventproc import CloseReason, PartitionContext
from tests.simulation.actor import Actor
from tests.simulation.handlers import CountingHandler
from tests.simulation.lanes import KeyedHandler
from tests.simulation.small.invariants import SmallInvariants


class ClosingHandler:
    """Reports why it was closed."""

    _actor: Actor
    _invariants: SmallInvariants

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Report it."""
        self._invariants.closed(self._actor, context.partition_id, reason)


class SmallHandler(ClosingHandler, CountingHandler):
    """Counts handled events."""

    _invariants: SmallInvariants


class SmallKeyedHandler(ClosingHandler, KeyedHandler):
    """The same with key lanes."""

    _invariants: SmallInvariants
