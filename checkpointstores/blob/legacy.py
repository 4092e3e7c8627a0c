"""Checkpoints in the leases of ``EventProcessorHost`` and Azure Functions, which are only read."""

from dataclasses import replace
from typing import Final

from checkpointstores.blob import azure_layout as layout
from checkpointstores.blob.body import CheckpointBody
from checkpointstores.blob.checkpoint import as_checkpoint
from checkpointstores.blob.round_trips import RoundTrips
from eventproc.concurrency.tasks import together
from eventproc.models import Checkpoint, ConsumerGroup

_ETAG: Final = "legacy "
"""Prefix of the ETag of a checkpoint from a lease. Its first update creates a new blob."""

_BYTES_MAX: Final = 64 * 1024


def etag_to_replace(checkpoint: Checkpoint | None) -> str | None:
    """Return the ETag of a checkpoint's own blob; ``None`` if there is no such blob yet."""
    if checkpoint is None or checkpoint.etag.startswith(_ETAG):
        return None
    return checkpoint.etag


class LegacyLeases:
    """The leases below one prefix; none if there is no prefix."""

    def __init__(self, blobs: RoundTrips, prefix: str | None) -> None:
        self._blobs = blobs
        self._prefix = prefix

    async def list(self, group: ConsumerGroup, known: set[str]) -> list[Checkpoint]:
        """Return the checkpoints of partitions that are not *known*."""
        if self._prefix is None:
            return []
        folder = layout.legacy_folder(self._prefix, group)
        listing = await self._blobs.list(folder)
        parts = {layout.part_below(folder, item.name) for item in listing.items} - {None, *known}
        found = await together(*(self.read(group, part) for part in parts if part))
        return [checkpoint for checkpoint in found if checkpoint is not None]

    async def read(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        """Return the checkpoint in the lease of a partition, if any."""
        if self._prefix is None:
            return None
        name = layout.legacy_folder(self._prefix, group) + partition_id
        item = await self._blobs.read(name, body_bytes_max=_BYTES_MAX)
        position = layout.legacy_position(item.body) if item else None
        if item is None or position is None:
            return None
        checkpoint = as_checkpoint(partition_id, position, item, CheckpointBody())
        return replace(checkpoint, etag=_ETAG + item.etag)
