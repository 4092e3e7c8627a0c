"""The direct receive path: Azure's client opens the link, and this package reads from it."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

from eventproc.models import EventPosition
from eventproc.sources.eventhubs.client import Client
from eventproc.sources.eventhubs.direct_path import azure_internals, management
from eventproc.sources.eventhubs.direct_path.receiver import EventHubReceiver
from eventproc.sources.eventhubs.options import PREFETCH, PREFETCH_MAX, EventHubOptions

OWNER_LEVEL: Final = 0
"""The owner level of an exclusive receiver, the same as of Azure's own processors. Of two receivers
with equal levels the newer one wins. A higher level would lock Azure's processors out of a shared
group; with a lower level this processor could not read there."""


class DirectPath:
    """The operations of a source through ``azure_internals`` and ``management``."""

    needs_own_client: ClassVar = False

    def __init__(self, options: EventHubOptions) -> None:
        """Use these options for each receiver."""
        self._options = options

    ask_hub = staticmethod(management.ask_hub)
    ask_partitions = staticmethod(management.ask_partitions)

    async def open_receiver(
        self, client: Client, group: str, partition_id: str, position: EventPosition
    ) -> EventHubReceiver:
        """Open a link and start to read ahead."""
        options = self._options
        open_link = partial(
            azure_internals.PartitionLink.open,
            client,
            group,
            partition_id,
            position,
            owner_level=OWNER_LEVEL if options.is_exclusive else None,
            tracks_last_enqueued=options.tracks_last_enqueued,
        )
        return await EventHubReceiver.open(
            open_link,
            room=options.prefetch or PREFETCH,
            room_for_columns=options.prefetch or PREFETCH_MAX,
            room_bytes=options.prefetch_bytes,
        )

    async def check_readable(self, client: Client, group: str, partition_id: str) -> None:
        """Raise if the service refuses to let the group read. No other receiver is displaced."""
        link = await azure_internals.PartitionLink.open(
            client, group, partition_id, EventPosition.latest(), _drop, owner_level=None
        )
        await link.close()


def _drop(payloads: Sequence[bytes]) -> None:
    """Do nothing. The service sends no events, because it has no credit."""
