"""Totals that stay exact if processes are killed and publishers send events twice.

State and position are stored in one write, so events that are delivered again after a crash are
added to the state from before them. Events that were published twice have the same message id.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.state import TypedState

REMEMBERED = 1_000
"""How many message ids to keep: a publisher repeats only what it has just sent."""


@dataclass
class Totals:
    """The state of each partition."""

    count: int = 0
    cents: int = 0
    recent_ids: list[str] = field(default_factory=list)


STATE = TypedState(Totals)


class ExactTotals(PartitionHandler):
    """Adds up the amounts in the bodies; counts each message id once."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Add the amounts of events whose message id is new."""
        with STATE.edit(context) as totals:
            known = set(totals.recent_ids)
            for event in events:
                if event.message_id in known:
                    continue
                if event.message_id is not None:
                    known.add(event.message_id)
                    totals.recent_ids.append(event.message_id)
                totals.count += 1
                totals.cents += int(event.body)
            del totals.recent_ids[:-REMEMBERED]
