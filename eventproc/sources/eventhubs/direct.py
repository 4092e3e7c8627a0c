"""Receiving directly: a link of Azure's client, read by us."""

from collections.abc import Sequence
from typing import ClassVar, Final

from eventproc.models import EventPosition, PartitionProperties
from eventproc.sources.eventhubs import inside
from eventproc.sources.eventhubs.options import EventHubOptions
from eventproc.sources.eventhubs.receiver import EventHubReceiver, OnPayloads
from eventproc.sources.eventhubs.vendor import Client

OWNER_LEVEL: Final = 0
"""Of an exclusive receiver, as Azure's own processors have it: the newer of two equals wins. A
higher level would lock them out of a shared group, a lower one could not read there."""


class DirectWay:
    """What the source asks for, by what ``inside.py`` knows of the client."""

    needs_own_client: ClassVar = False

    def __init__(self, options: EventHubOptions) -> None:
        """Follow the options."""
        self._options = options

    async def ask_partition_ids(self, client: Client) -> Sequence[str]:
        """Ask the service which partitions the hub has."""
        return await inside.ask_partition_ids(client)

    async def ask_partitions(
        self, client: Client, partition_ids: Sequence[str]
    ) -> Sequence[PartitionProperties]:
        """Ask the service where partitions begin and end, all on one connection."""
        return await inside.ask_partitions(client, partition_ids)

    async def open_receiver(
        self, client: Client, group: str, partition_id: str, position: EventPosition
    ) -> EventHubReceiver:
        """Open a link and begin to read ahead."""
        options = self._options

        async def open_link(on_payloads: OnPayloads) -> inside.PartitionLink:
            return await inside.PartitionLink.open(
                client,
                group,
                partition_id,
                position,
                on_payloads,
                owner_level=OWNER_LEVEL if options.is_exclusive else None,
            )

        return await EventHubReceiver.open(
            open_link, room=options.prefetch, room_bytes=options.prefetch_bytes
        )

    async def check_readable(self, client: Client, group: str, partition_id: str) -> None:
        """Raise what the service has against reading; it displaces nobody."""
        link = await inside.PartitionLink.open(
            client, group, partition_id, EventPosition.latest(), _drop, owner_level=None
        )
        await link.close()


def _drop(payloads: Sequence[bytes]) -> None:
    """Nothing comes: no credit was granted."""
