"""The demo's handler: an ordinary handler, as a user would write it, and a journal beside it.

It keeps a logbook for each aircraft as its state. State and position are stored in one write, so
the logbook is exact, however often a process is killed and whatever is delivered twice.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from eventproc import CloseReason, PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.cli.demo.flights import Logbook
from eventproc.cli.demo.journal import JOURNAL_VARIABLE, JournalWriter


class FlightLog(PartitionHandler):
    """Keeps the logbook of the aircraft whose flights come in one partition."""

    async def initialize(self, context: PartitionContext) -> None:
        """Take the logbook up where the last owner of the partition left it."""
        self._read_logbook(context)
        name = context.owner_id.replace("/", "-")  # in Spark it is that of a query
        path = Path(os.environ[JOURNAL_VARIABLE]) / f"{name}.journal"
        self._journal = JournalWriter(path)

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Enter the flights."""
        for event in events:
            self._logbook.add(json.loads(event.body))
        context.state = self._logbook.as_state()
        # Last, so that what stands in the journal was handled to the end.
        self._journal.note(context.partition_id, [event.sequence_number for event in events])

    async def process_error(
        self,
        context: PartitionContext,
        error: Exception,  # noqa: ARG002 - whatever it was
    ) -> None:
        """Forget what was entered of a batch that failed half-way: all of it comes again."""
        self._read_logbook(context)

    async def close(
        self,
        context: PartitionContext,  # noqa: ARG002
        reason: CloseReason,  # noqa: ARG002 - whatever it was
    ) -> None:
        """Let go of the journal."""
        self._journal.close()

    def _read_logbook(self, context: PartitionContext) -> None:
        self._logbook = Logbook()
        if context.state:
            self._logbook.take_in(context.state)
