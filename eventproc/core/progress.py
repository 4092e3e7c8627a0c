"""Where does a partition begin, and may this checkpoint be written?

Rule 1: a checkpoint names the *last handled* event; reading begins after it.
Rule 2: a checkpoint never moves to a lower sequence number, but by an operator's reset.
Rule 3: no blank checkpoint is ever written: Azure's readers fail a whole listing on one.
"""

from collections.abc import Iterable
from typing import Final

from eventproc.models import Checkpoint, CheckpointUpdate, EventPosition, SequenceRange

BEFORE_FIRST_SEQUENCE_NUMBER: Final = -1
BEFORE_FIRST_OFFSET: Final = "-1"
"""Where a partition begins that never had an event; Event Hubs' own name for it, which every
processor of Azure's understands as a place to start after."""

_OPERATOR: Final = "operator//"
"""Begins the ``writer`` of a checkpoint that an operator moved. A pump's has no empty part."""


def operators_writer(token: str) -> str:
    """Return the ``writer`` of one operator's moves."""
    return _OPERATOR + token


def is_moved_by_operator(checkpoint: Checkpoint) -> bool:
    """Whether nobody adopted the checkpoint since an operator moved it."""
    return checkpoint.writer is not None and checkpoint.writer.startswith(_OPERATOR)


def starting_position(checkpoint: Checkpoint | None, otherwise: EventPosition) -> EventPosition:
    """Return where to begin reading: after the checkpoint, else where the user said.

    The offset comes first, because a geo-replicated namespace keeps it across a fail-over; the
    sequence number serves where a checkpoint has no usable offset (some .NET versions).
    """
    if checkpoint is not None and checkpoint.offset is not None:
        return EventPosition.from_offset(checkpoint.offset)
    if checkpoint is not None and checkpoint.sequence_number is not None:
        return EventPosition.from_sequence_number(checkpoint.sequence_number)
    return otherwise


def adoption(checkpoint: Checkpoint | None, writer: str) -> CheckpointUpdate | None:
    """Return the write by which a new owner takes over the checkpoint that it found.

    It repeats what it found, so it changes nothing but the etag: from then on no conditional write
    of the former owner can succeed. ``None`` where there is nothing complete to repeat.
    """
    if checkpoint is None or checkpoint.offset is None or checkpoint.sequence_number is None:
        return None
    return CheckpointUpdate(
        partition_id=checkpoint.partition_id,
        offset=checkpoint.offset,
        sequence_number=checkpoint.sequence_number,
        replaces=checkpoint,
        writer=writer,
        completed=checkpoint.completed,
        delivery_count=checkpoint.delivery_count,
    )


def first_mark(partition_id: str, writer: str) -> CheckpointUpdate:
    """Return the write by which an owner takes a partition that begins at its first event.

    It does there what an adoption does elsewhere: from then on a former owner that found no
    checkpoint either cannot create one.
    """
    return CheckpointUpdate(
        partition_id=partition_id,
        offset=BEFORE_FIRST_OFFSET,
        sequence_number=BEFORE_FIRST_SEQUENCE_NUMBER,
        replaces=None,
        writer=writer,
    )


def completed_above(
    completed: Iterable[SequenceRange], sequence_number: int
) -> tuple[SequenceRange, ...]:
    """Return what of sorted, disjoint ranges lies above a position."""
    return tuple(
        SequenceRange(max(done.first, sequence_number + 1), done.last)
        for done in completed
        if done.last > sequence_number
    )


def is_behind(sequence_number: int, stored: Checkpoint | None) -> bool:
    """Whether writing this position over the stored one would go back."""
    return (
        stored is not None
        and stored.sequence_number is not None
        and sequence_number < stored.sequence_number
    )
