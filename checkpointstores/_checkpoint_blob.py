"""A checkpoint as a blob: from what is found to a record, and from an update to what is written.

All functions are pure; the round trips are ``_blob_records``'s.
"""

from checkpointstores import azure_layout as layout
from checkpointstores._blob_container import BlobItem, Written
from checkpointstores._checkpoint_body import CheckpointBody
from checkpointstores.azure_layout import Position
from eventproc.core.progress import completed_above
from eventproc.models import Checkpoint, CheckpointUpdate


def as_checkpoint(
    partition_id: str, position: Position, item: BlobItem, body: CheckpointBody | None
) -> Checkpoint:
    """The record that a blob holds; without its body, as in a listing, a part of it.

    Where a processor of another SDK moved the position since, it left the body behind: what was
    done above the old position is still done where it lies above the new one, and nobody counted
    deliveries there.
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
        delivery_count=body.delivery_count if number == body.sequence_number else 0,
        is_partial=is_partial,
        writer=position.writer,
        etag=item.etag,
        last_modified=item.last_modified,
    )


def body_after(update: CheckpointUpdate, replaces: Checkpoint | None) -> CheckpointBody:
    """The whole body that an update makes; a state that it leaves alone is as it was read."""
    if update.state is not None:
        state, state_sequence_number = update.state or None, update.sequence_number
    else:
        state = replaces.state if replaces else None
        state_sequence_number = (replaces.state_sequence_number if replaces else None) or 0
    return CheckpointBody(
        state=state,
        state_sequence_number=state_sequence_number if state else None,
        sequence_number=update.sequence_number,
        completed=update.completed,
        delivery_count=update.delivery_count,
    )


def may_keep_body(update: CheckpointUpdate, replaces: Checkpoint | None) -> bool:
    """Whether the body that lies there says after the update what it should.

    Then metadata alone is written, and a large state does not travel with every position.
    """
    stored = (replaces.completed, replaces.delivery_count) if replaces else ((), 0)
    return (
        update.state is None
        and (update.completed, update.delivery_count) == stored == ((), 0)
        and not update.is_reset  # What was left behind at other positions must go.
    )


def stored_checkpoint(
    update: CheckpointUpdate, body: CheckpointBody, written: Written
) -> Checkpoint:
    """The checkpoint that an update made."""
    return Checkpoint(
        partition_id=update.partition_id,
        offset=update.offset,
        sequence_number=update.sequence_number,
        state=body.state,
        state_sequence_number=body.state_sequence_number,
        completed=body.completed,
        delivery_count=body.delivery_count,
        writer=update.writer,
        etag=written.etag,
        last_modified=written.last_modified,
    )


def is_written_by(update: CheckpointUpdate, body: bytes | None, found: BlobItem) -> bool:
    """Whether a blob is what this very update wrote.

    The content cannot tell: a new owner's adoption repeats it. The writer can, and where one pump
    wrote twice at one position, the body does.
    """
    position = layout.position_in(found.metadata)
    return (
        position.writer == update.writer
        and position.sequence_number == update.sequence_number
        and (body is None or found.body == body)
    )
