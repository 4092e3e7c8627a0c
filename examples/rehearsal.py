"""A handler that charges twice, and the same one mended; docs/rehearse.md rehearses both."""

import json

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent


async def charge(order: int, amount: int, *, idempotency_key: str | None = None) -> None:
    """Ask the payment service to charge a customer."""


class Orders(PartitionHandler):
    """Charges each order; after a crash it charges some of them again."""

    async def process_event(
        self,
        context: PartitionContext,  # noqa: ARG002
        event: ReceivedEvent,
    ) -> None:
        """Charge one order."""
        order = json.loads(event.body)
        await charge(order["id"], order["amount"])


class MendedOrders(PartitionHandler):
    """Names each charge, so that the payment service recognises a repeated one."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Charge one order."""
        order = json.loads(event.body)
        name = f"{context.partition_id}-{event.sequence_number}"
        await charge(order["id"], order["amount"], idempotency_key=name)
