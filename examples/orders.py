"""A handler for ``eventproc run``: it counts the orders of each partition.

In one terminal: ``eventproc emulator --hub orders:8``. In others, with the variable that it prints:
``cd examples && eventproc run orders:OrderHandler --eventhub orders --store sqlite:group.db``.
"""

from collections.abc import Sequence

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent


class OrderHandler(PartitionHandler):
    """Counts orders; the count is stored with the position, so it stays exact after a crash."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order."""
        count = int(context.state or 0) + len(events)
        context.state = str(count).encode()
        print(f"{context.owner_id}, partition {context.partition_id}: {count} orders", flush=True)
