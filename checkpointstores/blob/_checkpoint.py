"""Checkpoints in blobs: the group's, and those in older leases, which are only read.

The leases are those of ``EventProcessorHost`` and Azure Functions. The first update of a checkpoint
from a lease creates a blob of the group.
"""

from dataclasses import replace
from typing import Final

from checkpointstores.blob import _layout as layout
from checkpointstores.blob._body import CheckpointBody
from checkpointstores.blob._container import BlobItem
from checkpointstores.blob._layout import Position
from checkpointstores.blob._requests import BlobRequests
from eventproc._base.tasks import together
from eventproc._core.delivery.checkpoints import completed_above
from eventproc.models import NOT_BEGUN, Checkpoint, CheckpointUpdate, ConsumerGroup


def as_checkpoint(
    partition_id: str, position: Position, item: BlobItem, body: CheckpointBody | None
) -> Checkpoint:
    """Return the record in a blob; a partial record if *body* is ``None``, as in a listing.

    A processor of an Azure SDK moves the position and keeps the body, which then belongs to the old
    position. Completed ranges above the new position are still valid; the isolation is not.
    """
    is_partial = body is None
    body = body or CheckpointBody()
    number = position.sequence_number
    return Checkpoint(
        partition_id=partition_id,
        offset=position.offset,
        sequence_number=number,
        state=body.state,
        state_sequence_number=body.state_sequence_number,
        completed=() if number is None else completed_above(body.completed, number),
        isolation=body.isolation if number == body.sequence_number else NOT_BEGUN,
        is_partial=is_partial,
        writer=position.writer,
        etag=item.etag,
        last_modified=item.last_modified,
    )


def may_keep_body(update: CheckpointUpdate, replaces: Checkpoint | None) -> bool:
    """Return whether the stored body is still correct after the update.

    Then only metadata is written, so that a large state is not sent with every position.
    """
    nothing = ((), NOT_BEGUN)
    stored = (replaces.completed, replaces.isolation) if replaces else nothing
    return (
        update.state is None
        and (update.completed, update.isolation) == stored == nothing
        and not update.is_reset  # a reset also removes completed ranges of other positions
    )


def is_written_by(update: CheckpointUpdate, body: bytes | None, found: BlobItem) -> bool:
    """Return whether this update wrote the blob.

    The position alone does not show it, because a new owner that adopts the checkpoint writes the
    same one. So the writer is compared, and the body, because one pump may write twice at one
    position.
    """
    position = layout.position_in(found.metadata)
    return (
        position.writer == update.writer
        and position.sequence_number == update.sequence_number
        and (body is None or found.body == body)
    )


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

    def __init__(self, blobs: BlobRequests, prefix: str | None) -> None:
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
