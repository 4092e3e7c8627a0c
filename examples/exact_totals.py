"""Totals that stay exact although processes are killed and publishers send twice.

The state goes with the position, in one write: events that come again after a crash come to the
state of the same moment. The publisher's own repetitions are known by their message ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.state import TypedState

REMEMBERED = 1_000
"""Message ids of so many events: a publisher repeats what it sent a moment ago, not last week."""


@dataclass
class Totals:
    """What is kept for each partition."""

    count: int = 0
    cents: int = 0
    recent_ids: list[str] = field(default_factory=list)


STATE = TypedState(Totals)


class ExactTotals(PartitionHandler):
    """Adds up the amounts in the bodies; what has a message id counts once for it."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Add what is new."""
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
