"""The handler of the demo: takes a moment for each order, and keeps a journal."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from eventproc.cli.demo.journal import JOURNAL_VARIABLE
from eventproc.cli.demo.rabbitmq.journal import CallWriter
from eventproc.cli.demo.rabbitmq.orders import order_in
from eventproc.handler import PartitionContext, PartitionHandler
from eventproc.models import CloseReason, ReceivedEvent

ORDERS_PER_SECOND: Final = 4000
"""What a handler does with the orders of one queue."""


class OrderHandler(PartitionHandler):
    """Handles the orders of one queue."""

    def __init__(self) -> None:
        self._journal = CallWriter(Path(os.environ[JOURNAL_VARIABLE]), os.environ["POD_NAME"])

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch."""
        orders = [order_in(event.body) for event in events]
        self._journal.enter(context.partition_id)
        await asyncio.sleep(len(orders) / ORDERS_PER_SECOND)
        self._journal.leave(context.partition_id, orders)

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:  # noqa: ARG002
        """Close the journal."""
        self._journal.close()
