"""The demo's handler: an ordinary handler, as a user would write it, that also writes a journal.

Its state is a logbook of aircraft. State and position are stored in one write, so the logbook stays
exact if processes are killed and events are delivered twice.
"""

import json
from collections.abc import Sequence

from eventproc import CloseReason, PartitionContext, PartitionHandler, ReceivedEvent
from eventproc._command.demo.flights import Logbook
from eventproc._command.demo.journal import JournalWriter


class FlightLog(PartitionHandler):
    """Keeps the logbook of the aircraft whose flights are in one partition."""

    async def initialize(self, context: PartitionContext) -> None:
        """Read the logbook that the former owner of the partition stored."""
        self._read_logbook(context)
        self._journal = JournalWriter(context.owner_id)

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Add the flights to the logbook."""
        for event in events:
            self._logbook.add(json.loads(event.body))
        context.state = self._logbook.as_state()
        # Last, so that the journal has only events that were handled completely.
        self._journal.note(context.partition_id, [event.sequence_number for event in events])

    async def process_error(
        self,
        context: PartitionContext,
        error: Exception,  # noqa: ARG002 - the same for all
    ) -> None:
        """Discard the flights of a batch that failed half-way: it is delivered again."""
        self._read_logbook(context)

    async def close(
        self,
        context: PartitionContext,  # noqa: ARG002
        reason: CloseReason,  # noqa: ARG002 - the same for all
    ) -> None:
        """Close the journal."""
        self._journal.close()

    def _read_logbook(self, context: PartitionContext) -> None:
        self._logbook = Logbook()
        if context.state:
            self._logbook.take_in(context.state)
