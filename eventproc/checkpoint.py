"""The records of progress: what a checkpoint says, and how one is replaced by the next.

Import these from ``eventproc.models``, where all records are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from itertools import pairwise
from typing import Final

from eventproc.errors import StateTooLargeError

STATE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Largest handler state. It is rewritten whole at each checkpoint, so it must stay small."""

COMPLETED_RANGES_MAX: Final = 1_000
"""Most ranges that a checkpoint keeps above its position. They are written with every one."""


class Numbering(Enum):
    """Whose sequence numbers and offsets a group's are. Those of two may not be exchanged.

    Whether one event of an event hub has the same number over AMQP and over Kafka was never
    verified: a group that was read by one goes on by that one.
    """

    AMQP = "amqp"
    KAFKA = "kafka"


class WriteOutcome(Enum):
    """What became of a conditional write. ``UNKNOWN`` must never be treated as ``WON``."""

    WON = "won"
    LOST = "lost"
    """Somebody else wrote first; nothing was changed."""

    UNKNOWN = "unknown"
    """No answer that tells. The write may or may not have taken effect: read again."""


@dataclass(frozen=True, slots=True, order=True)
class SequenceRange:
    """Consecutive sequence numbers, both ends included."""

    first: int
    last: int

    def __post_init__(self) -> None:
        """Refuse a range without a number in it."""
        if self.last < self.first:
            raise ValueError(f"range from {self.first} to {self.last} has nothing in it")

    def __contains__(self, sequence_number: int) -> bool:
        """Whether the number lies in the range."""
        return self.first <= sequence_number <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """How far a partition was handled: the position of the *last handled* event.

    At least one of ``offset`` and ``sequence_number`` is set.
    """

    partition_id: str
    offset: str | None
    """Opaque: never compared, never computed with."""

    sequence_number: int | None
    state: bytes | None = None
    """The handler's state; ``None`` where there is none."""

    state_sequence_number: int | None = None
    """The position that ``state`` was written with. It differs from ``sequence_number`` when a
    processor of another SDK, which knows nothing of state, moved the checkpoint since."""

    completed: tuple[SequenceRange, ...] = ()
    """What is handled already above ``sequence_number``: sorted, disjoint."""

    delivery_count: int = 0
    """How often what follows this position was handed to a handler, and nobody heard of it again:
    the position did not move on, and the pump did not close in good order."""

    is_partial: bool = False
    """True where it comes from a listing, which leaves out state, ``completed`` and
    ``delivery_count``: then they are unknown, and not absent."""

    writer: str | None = None
    """Which pump of which processor wrote it, where known."""

    etag: str
    last_modified: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointUpdate:
    """A conditional write of a checkpoint: replace exactly the one that was read.

    A lower sequence number than the one it replaces is refused when the value is built, so no
    store can be asked to go back by mistake.
    """

    partition_id: str
    offset: str
    sequence_number: int
    replaces: Checkpoint | None
    """``None``: only if no checkpoint exists yet."""

    writer: str
    """Names the pump that writes. A store uses it to recognise a write of its own whose answer
    was lost: the content alone cannot tell, because an adoption repeats the content."""

    state: bytes | None = None
    """``None`` leaves the stored state alone; ``b""`` removes it."""

    completed: tuple[SequenceRange, ...] = ()
    """All that is handled above the position, whatever was stored before: sorted, disjoint."""

    delivery_count: int = 0
    """The count to store, whatever was stored before."""

    is_reset: bool = False
    """True only for an operator's reset, which may go back."""

    def __post_init__(self) -> None:
        """Refuse what no reader could use, and going back."""
        if not self.offset:
            raise ValueError(f"checkpoint of partition {self.partition_id!r} needs an offset")
        if self.sequence_number < -1:  # -1 is before the first event there will ever be.
            raise ValueError(f"sequence number {self.sequence_number} is below any event's")
        previous = self.replaces.sequence_number if self.replaces else None
        if previous is not None and self.sequence_number < previous and not self.is_reset:
            raise ValueError(
                f"checkpoint of partition {self.partition_id!r} would go back from {previous} "
                f"to {self.sequence_number}; only a reset may do that"
            )
        if self.state is not None and len(self.state) > STATE_BYTES_MAX:
            raise StateTooLargeError(
                f"state of partition {self.partition_id!r} has {len(self.state)} bytes, "
                f"the limit is {STATE_BYTES_MAX}: keep less, or keep it elsewhere"
            )
        if self.delivery_count < 0:
            raise ValueError(f"delivery count {self.delivery_count} is below zero")
        _refuse_ranges(self.partition_id, self.sequence_number, self.completed)


def _refuse_ranges(
    partition_id: str, sequence_number: int, completed: Sequence[SequenceRange]
) -> None:
    """Refuse ranges that a reader would have to sort out, and more than a checkpoint keeps."""
    if len(completed) > COMPLETED_RANGES_MAX:
        raise ValueError(
            f"checkpoint of partition {partition_id!r} has {len(completed)} ranges of completed "
            f"events, the limit is {COMPLETED_RANGES_MAX}: handle what lies between them first"
        )
    if completed and completed[0].first <= sequence_number:
        raise ValueError(
            f"checkpoint of partition {partition_id!r} at {sequence_number} has {completed[0]}, "
            "which does not lie above it"
        )
    if any(later.first <= earlier.last for earlier, later in pairwise(completed)):
        raise ValueError(
            f"checkpoint of partition {partition_id!r} has ranges that are not sorted and disjoint"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointResult:
    """What became of a checkpoint write."""

    outcome: WriteOutcome
    checkpoint: Checkpoint | None = None
    """The stored checkpoint when won: what the next update ``replaces``."""
