"""Convert between checkpoint blobs and checkpoint records.

All functions are pure; ``store.py`` makes the requests.
"""

from checkpointstores.blob import azure_layout as layout
from checkpointstores.blob.azure_layout import Position
from checkpointstores.blob.body import CheckpointBody
from checkpointstores.blob.container import BlobItem
from eventproc.core.checkpoints import completed_above
from eventproc.models import NOT_BEGUN, Checkpoint, CheckpointUpdate


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
