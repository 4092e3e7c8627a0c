"""Where does a partition begin, and may this checkpoint be written?

Rule 1: a checkpoint names the *last handled* event; reading begins after it.
Rule 2: a checkpoint never moves to a lower sequence number, except by an operator's reset, and
where the hub was deleted and created again.
Rule 3: a checkpoint always has a position: Azure's readers fail a whole listing on an empty one.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from eventproc.models import (
    Checkpoint,
    CheckpointUpdate,
    EventPosition,
    PartitionProperties,
    SequenceRange,
)

BEFORE_FIRST_SEQUENCE_NUMBER: Final = -1
BEFORE_FIRST_OFFSET: Final = "-1"
"""The position before the first event of a partition. It is Event Hubs' own name, and the Azure
SDKs begin after it like after any other offset."""

_OPERATOR: Final = "operator//"
"""The prefix of ``writer`` in a checkpoint that an operator moved. Between its slashes it is empty;
the ``writer`` of a pump has no empty part."""

_FORMER_HUB: Final = "former-hub//"
"""The prefix of ``writer`` in a checkpoint whose hub was found to be deleted and created again."""


def operators_writer(token: str) -> str:
    """Return the ``writer`` for the checkpoints that one operator moves."""
    return _OPERATOR + token


def is_moved_by_operator(checkpoint: Checkpoint) -> bool:
    """Whether an operator moved the checkpoint and no pump has adopted it since."""
    return checkpoint.writer is not None and checkpoint.writer.startswith(_OPERATOR)


def former_hubs_writer(writer: str) -> str:
    """Return the ``writer`` that marks a checkpoint as one of a hub that was deleted."""
    return _FORMER_HUB + writer.removeprefix(_FORMER_HUB)


def is_of_former_hub(checkpoint: Checkpoint, hub_created_at: datetime | None) -> bool:
    """Whether a hub was deleted and created again since the checkpoint was written.

    Either an owner that noticed it marked the checkpoint, or the hub is younger. The mark stays
    true when the new hub has grown beyond the checkpoint's position.

    Args:
        checkpoint: As it was found, before it is adopted.
        hub_created_at: When the present hub was created; ``None`` if the source does not say.
    """
    is_marked = checkpoint.writer is not None and checkpoint.writer.startswith(_FORMER_HUB)
    return is_marked or is_older_than_hub(checkpoint, hub_created_at)


def is_older_than_hub(checkpoint: Checkpoint, hub_created_at: datetime | None) -> bool:
    """Whether the hub is younger than the checkpoint, so that the position is of another hub."""
    return precedes_hub(checkpoint.sequence_number, checkpoint.last_modified, hub_created_at)


def precedes_hub(
    sequence_number: int | None, known_since: datetime, hub_created_at: datetime | None
) -> bool:
    """Whether a position was known before the hub was created, so that it is of another hub.

    The position before the first event is valid in any hub.
    """
    return (
        hub_created_at is not None
        and sequence_number != BEFORE_FIRST_SEQUENCE_NUMBER
        and known_since < hub_created_at
    )


def is_beyond_end(sequence_number: int | None, end: PartitionProperties) -> bool:
    """Whether the hub never had an event of this number: the position is of another log."""
    return sequence_number is not None and sequence_number > end.last_enqueued_sequence_number


def is_of_other_hub(
    checkpoint: Checkpoint, end: PartitionProperties | None, hub_created_at: datetime | None
) -> bool:
    """Whether a checkpoint is not one of the present hub, as far as marks, times and numbers tell.

    Args:
        checkpoint: As it was found.
        end: The end of its partition; ``None`` if it is not known, or numbers mean nothing.
        hub_created_at: When the present hub was created; ``None`` if the source does not say.
    """
    return is_of_former_hub(checkpoint, hub_created_at) or (
        end is not None and is_beyond_end(checkpoint.sequence_number, end)
    )


def handled_in_hub(
    checkpoint: Checkpoint | None, end: PartitionProperties, hub_created_at: datetime | None
) -> int | None:
    """Return the last event that a checkpoint covers; ``None`` if it covers none of this hub.

    A checkpoint of a former hub covers none, although its position may be beyond the hub's end.
    """
    if checkpoint is None or is_of_other_hub(checkpoint, end, hub_created_at):
        return None
    return checkpoint.sequence_number


def restart_in_new_hub(checkpoint: Checkpoint, writer: str) -> CheckpointUpdate:
    """Return the write that replaces a checkpoint of a former hub: before the first event.

    It removes the state, too, because that is of events that do not exist any more.
    """
    return CheckpointUpdate(
        partition_id=checkpoint.partition_id,
        offset=BEFORE_FIRST_OFFSET,
        sequence_number=BEFORE_FIRST_SEQUENCE_NUMBER,
        replaces=checkpoint,
        writer=writer,
        state=b"",
        is_reset=True,
    )


def pumps_writer(owner_id: str, incarnation: str, pump_number: int) -> str:
    """Return the ``writer`` of one pump of one run of a processor."""
    return f"{owner_id}/{incarnation}/{pump_number}"


def pump_owner(writer: str | None) -> str | None:
    """Return the owner id of the pump that a ``writer`` names; ``None`` if it names no pump."""
    written = (writer or "").removeprefix(_FORMER_HUB)
    owner_id, _, rest = written.rpartition("/")[0].rpartition("/")
    return owner_id if owner_id and rest else None


def starting_position(checkpoint: Checkpoint | None, otherwise: EventPosition) -> EventPosition:
    """Return where to begin reading: after the checkpoint, or *otherwise* if there is none.

    The offset is preferred, because a geo-replicated namespace keeps it across a fail-over. The
    sequence number is used if the checkpoint has no offset (some .NET versions), or if the service
    does not accept the offset any more (one from before geo-replication was switched on).
    """
    if checkpoint is not None and checkpoint.offset is not None:
        return EventPosition.from_offset(
            checkpoint.offset, sequence_number=checkpoint.sequence_number
        )
    if checkpoint is not None and checkpoint.sequence_number is not None:
        return EventPosition.from_sequence_number(checkpoint.sequence_number)
    return otherwise


def adoption(checkpoint: Checkpoint | None, writer: str) -> CheckpointUpdate | None:
    """Return the write by which a new owner adopts the checkpoint that it found.

    It has the same content, so it changes only the ETag and the writer: from then on no
    conditional write of the former owner can succeed. ``None`` if there is no complete checkpoint.
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
        isolation=checkpoint.isolation,
    )


def initial_checkpoint(partition_id: str, writer: str) -> CheckpointUpdate:
    """Return a checkpoint before the first event, for a partition that has none.

    It replaces the adoption: from then on a former owner, which found no checkpoint either, cannot
    create one.
    """
    return CheckpointUpdate(
        partition_id=partition_id,
        offset=BEFORE_FIRST_OFFSET,
        sequence_number=BEFORE_FIRST_SEQUENCE_NUMBER,
        replaces=None,
        writer=writer,
    )


def checkpoint_after(update: CheckpointUpdate, current: Checkpoint | None) -> Checkpoint:
    """Return the checkpoint that an update writes over the current one.

    A state that the update does not set stays unchanged. The store sets ``etag`` and
    ``last_modified``.
    """
    state, state_sequence_number = update.state or None, update.sequence_number
    if update.state is None and current is not None:
        state, state_sequence_number = current.state, current.state_sequence_number or 0
    return Checkpoint(
        partition_id=update.partition_id,
        offset=update.offset,
        sequence_number=update.sequence_number,
        state=state,
        state_sequence_number=state_sequence_number if state else None,
        completed=update.completed,
        isolation=update.isolation,
        writer=update.writer,
        etag="",
        last_modified=datetime.min.replace(tzinfo=UTC),
    )


def completed_above(
    completed: Iterable[SequenceRange], sequence_number: int
) -> tuple[SequenceRange, ...]:
    """Return the part of sorted, disjoint ranges that lies above a position."""
    return tuple(
        SequenceRange(max(done.first, sequence_number + 1), done.last)
        for done in completed
        if done.last > sequence_number
    )


def is_behind(sequence_number: int, stored: Checkpoint | None) -> bool:
    """Whether this position is lower than the stored one."""
    return (
        stored is not None
        and stored.sequence_number is not None
        and sequence_number < stored.sequence_number
    )


def is_written_by_another(found: Checkpoint | None, known: Checkpoint | None, writer: str) -> bool:
    """Whether *found* is neither the checkpoint that a pump knows nor a write of that pump."""
    known_etag = None if known is None else known.etag
    if found is None:
        return known_etag is not None
    return found.etag != known_etag and found.writer != writer
