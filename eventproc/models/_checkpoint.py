"""Checkpoints: the stored record with its isolation, and the write that replaces it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, IntEnum
from itertools import pairwise
from typing import Final

from eventproc.errors import StateTooLargeError, StoreError

_DIGITS_MAX: Final = 18


class IsolationMode(IntEnum):
    """Beside how many others an event was delivered: the higher the mode, the fewer."""

    NONE = 0
    """The event was not delivered."""

    BATCH = 1
    PART = 2
    """In a small part of a batch."""

    ALONE = 3


@dataclass(frozen=True, slots=True, order=True)
class Isolation:
    """How events were delivered: with which other events, and how often alone."""

    mode: IsolationMode
    alone_count: int = 0
    """At least 1 if ``mode`` is ``ALONE``, otherwise 0."""

    def __post_init__(self) -> None:
        """Refuse a count that does not belong to the mode."""
        if (self.mode is IsolationMode.ALONE) != (self.alone_count > 0) or self.alone_count < 0:
            raise ValueError(f"alone_count {self.alone_count} does not fit {self.mode.name}")

    def __str__(self) -> str:
        """Return the stored word: ``none``, ``batch``, ``part``, ``alone``, ``alone 2``."""
        word = self.mode.name.lower()
        return f"{word} {self.alone_count}" if self.alone_count > 1 else word

    @classmethod
    def parse(cls, text: str) -> "Isolation":
        """Return what a stored word says. An unknown word counts as ``batch``.

        Then the events are delivered in small parts next, which is never wrong.
        """
        word, _, count = text.partition(" ")
        if word == "alone" and (not count or (count.isdecimal() and len(count) <= _DIGITS_MAX)):
            return alone(max(1, int(count or 1)))
        return {"none": NOT_BEGUN, "part": IN_PART}.get(text, IN_BATCH)


NOT_BEGUN: Final = Isolation(IsolationMode.NONE)
"""No event after the checkpoint was delivered."""

IN_BATCH: Final = Isolation(IsolationMode.BATCH)
"""The events were delivered in a batch of the usual size."""

IN_PART: Final = Isolation(IsolationMode.PART)
"""The events were delivered in a small part of a batch."""


def alone(count: int) -> Isolation:
    """Return the isolation of events that were delivered alone *count* times."""
    return Isolation(IsolationMode.ALONE, count)


ALONE: Final = alone(1)
"""The first event was delivered alone, for the first time."""

STATE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Largest handler state, in bytes. Each checkpoint writes all of it, so it must stay small."""

COMPLETED_RANGES_MAX: Final = 1_000
"""Most completed ranges in one checkpoint. Each checkpoint writes all of them."""


SEQUENCE_NUMBER_MAX: Final = 2**63 - 1
"""The highest sequence number: Event Hubs and Kafka count in signed 64 bits."""

NO_OFFSET: Final = "no offset"
"""Azure's .NET SDK 5.11 writes this text if it has no offset."""

NO_OFFSETS: Final = frozenset({"", NO_OFFSET, "none", "null"})
"""What means a missing offset to some reader, in lower case: Azure's Python SDK writes ``None``."""


class OffsetFormat(Enum):
    """The protocol that a group's offsets and sequence numbers come from.

    An event may have different numbers over different protocols. So a group keeps to one of them.
    """

    AMQP = "amqp"
    KAFKA = "kafka"
    QUEUE = "queue"
    """Numbers count the deliveries of a partition queue: the broker keeps what is acknowledged."""


QUEUE_OFFSET_PREFIX: Final = "queue:"
"""The prefix of each offset of a message that a queue delivered."""


class WriteOutcome(Enum):
    """The outcome of a conditional write. ``UNKNOWN`` must never be treated as ``WON``."""

    WON = "won"
    LOST = "lost"
    """Another processor wrote first; nothing was changed."""

    UNKNOWN = "unknown"
    """The store did not report an outcome. The write may have taken effect: read again."""


@dataclass(frozen=True, slots=True, order=True)
class SequenceRange:
    """Consecutive sequence numbers, both ends included."""

    first: int
    last: int

    def __post_init__(self) -> None:
        """Refuse a range that ends before it begins."""
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
    """An opaque string: never compared, never computed with."""

    sequence_number: int | None
    state: bytes | None = None
    """The handler's state; ``None`` if there is none."""

    state_sequence_number: int | None = None
    """The position that ``state`` was written with. It differs from ``sequence_number`` if an Azure
    SDK processor, which does not write state, moved the checkpoint since."""

    completed: tuple[SequenceRange, ...] = ()
    """The events above ``sequence_number`` that are handled already: sorted, disjoint ranges."""

    isolation: Isolation = NOT_BEGUN
    """How the events after this position were delivered by a pump that did not close normally
    (``_core/delivery/failure.py``)."""

    is_partial: bool = False
    """True for a checkpoint of a listing. It lacks state, ``completed`` and ``isolation``, so
    their values here are meaningless."""

    writer: str | None = None
    """The pump and processor that wrote it, if known."""

    etag: str
    last_modified: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointUpdate:
    """A conditional write of a checkpoint: replace exactly the one that was read.

    A sequence number lower than the one it replaces is refused when the object is built, so a
    checkpoint cannot go back by mistake.
    """

    partition_id: str
    offset: str
    sequence_number: int
    replaces: Checkpoint | None
    """``None``: only if no checkpoint exists yet."""

    writer: str
    """Names the pump that writes. A store uses it to recognise its own write after a lost answer:
    the content is not enough for that, because an adoption repeats it."""

    state: bytes | None = None
    """``None`` leaves the stored state alone; ``b""`` removes it."""

    completed: tuple[SequenceRange, ...] = ()
    """All events handled above the position: sorted, disjoint. Replaces what is stored."""

    isolation: Isolation = NOT_BEGUN
    """As in ``Checkpoint``. Replaces what is stored."""

    is_reset: bool = False
    """True where the position may go back: an operator's reset, or a hub that was created again."""

    def __post_init__(self) -> None:
        """Refuse values that no reader could use, and a position that goes back."""
        _refuse_offset(self.partition_id, self.offset)
        # -1 is the position before the first event of a partition.
        if not -1 <= self.sequence_number <= SEQUENCE_NUMBER_MAX:
            raise ValueError(
                f"sequence number {self.sequence_number} is not between -1 and "
                f"{SEQUENCE_NUMBER_MAX}"
            )
        previous = self.replaces.sequence_number if self.replaces else None
        if previous is not None and self.sequence_number < previous and not self.is_reset:
            raise ValueError(
                f"checkpoint of partition {self.partition_id!r} would go back from {previous} "
                f"to {self.sequence_number}; only a reset may do that"
            )
        check_state(self.partition_id, self.state)
        _refuse_ranges(self.partition_id, self.sequence_number, self.completed)


def check_state(partition_id: str, state: object) -> None:
    """Refuse a state that cannot be stored.

    Raises:
        StateTooLargeError: it has more than ``STATE_BYTES_MAX`` bytes.
        TypeError: it is neither bytes nor ``None``.
    """
    if state is None:
        return
    if not isinstance(state, bytes):
        raise TypeError(
            f"state of partition {partition_id!r} is a {type(state).__name__}: give bytes, or keep "
            "a value of a type with eventproc.state.TypedState"
        )
    if len(state) > STATE_BYTES_MAX:
        raise StateTooLargeError(
            f"state of partition {partition_id!r} has {len(state)} bytes, the limit is "
            f"{STATE_BYTES_MAX}: keep less, or store it elsewhere"
        )


def _refuse_offset(partition_id: str, offset: str) -> None:
    """Refuse an offset that a store might change, or that means "no offset" to a reader."""
    if not offset:
        raise ValueError(f"checkpoint of partition {partition_id!r} needs an offset")
    if not (offset.isascii() and offset.isprintable() and offset == offset.strip()):
        raise ValueError(
            f"offset {offset!r} cannot be stored: give printable ASCII characters without "
            "surrounding blanks"
        )
    if offset.lower() in NO_OFFSETS:
        raise ValueError(
            f"offset {offset!r} is what other readers take for a missing offset: give the event's "
            "offset"
        )


def _refuse_ranges(
    partition_id: str, sequence_number: int, completed: Sequence[SequenceRange]
) -> None:
    """Refuse ranges that overlap or are out of order, and more than ``COMPLETED_RANGES_MAX``."""
    if len(completed) > COMPLETED_RANGES_MAX:
        raise ValueError(
            f"checkpoint of partition {partition_id!r} has {len(completed)} ranges of completed "
            f"events, the limit is {COMPLETED_RANGES_MAX}: handle the events between them first"
        )
    if completed and completed[0].first <= sequence_number:
        raise ValueError(
            f"checkpoint of partition {partition_id!r} at {sequence_number} has {completed[0]}, "
            "which does not lie above it"
        )
    if completed and completed[-1].last > SEQUENCE_NUMBER_MAX:
        raise ValueError(
            f"checkpoint of partition {partition_id!r} has {completed[-1]}, which ends above "
            f"{SEQUENCE_NUMBER_MAX}"
        )
    if any(later.first <= earlier.last for earlier, later in pairwise(completed)):
        raise ValueError(
            f"checkpoint of partition {partition_id!r} has ranges that are not sorted and disjoint"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointResult:
    """The outcome of a checkpoint write."""

    outcome: WriteOutcome
    checkpoint: Checkpoint | None = None
    """The stored checkpoint if won: the next update ``replaces`` it."""

    error: StoreError | None = None
    """Why the outcome is unknown, if the store reports it."""
