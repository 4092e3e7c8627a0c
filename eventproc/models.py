"""The records that travel between the floors: frozen values without behaviour of their own.

A time is an aware ``datetime``, a span a ``timedelta``. A partition id is a string even where it
looks like a number. Every record that came from a store carries the ``etag`` it had there.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from eventproc.checkpoint import COMPLETED_RANGES_MAX as COMPLETED_RANGES_MAX
from eventproc.checkpoint import STATE_BYTES_MAX as STATE_BYTES_MAX
from eventproc.checkpoint import Checkpoint as Checkpoint
from eventproc.checkpoint import CheckpointResult as CheckpointResult
from eventproc.checkpoint import CheckpointUpdate as CheckpointUpdate
from eventproc.checkpoint import Numbering as Numbering
from eventproc.checkpoint import SequenceRange as SequenceRange
from eventproc.checkpoint import WriteOutcome as WriteOutcome
from eventproc.errors import ConfigurationError


class LoadBalancingStrategy(Enum):
    """How a processor carries out its lines of the plan. All three follow the same plan."""

    BALANCED = "balanced"
    """At most one claim or steal in each cycle."""

    GREEDY = "greedy"
    """Every orphan that is due at once; at most one steal in each cycle."""

    COOPERATIVE = "cooperative"
    """As ``GREEDY``, and a surplus partition is handed over by its owner, without duplicates."""


class CloseReason(Enum):
    """Why a partition's handler is closed."""

    SHUTDOWN = "shutdown"
    """The processor stops. Progress was checkpointed."""

    HANDED_OVER = "handed_over"
    """The plan gives the partition to another processor. Progress was checkpointed."""

    OWNERSHIP_LOST = "ownership_lost"
    """Another processor has the partition, or an operator moved its checkpoint: then it begins
    anew from there. Checkpoints are refused from here on."""

    HANDLER_FAILED = "handler_failed"
    """The handler could not be set up, or gave up for good."""

    SOURCE_FAILED = "source_failed"
    """The event source refuses the partition for good."""

    STALLED = "stalled"
    """There was work and none of it got done within ``stall_timeout``."""


def _refuse_name(kind: str, value: str) -> None:
    """One rule for the names that become parts of a record's key."""
    if not value or value != value.strip():
        raise ConfigurationError(f"{kind} is {value!r}: give a name without surrounding blanks")
    if "/" in value or "\\" in value:
        raise ConfigurationError(
            f"{kind} {value!r} has a slash, which separates the parts of a key"
        )
    if not value.isprintable():
        raise ConfigurationError(f"{kind} {value!r} has characters that cannot be printed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroup:
    """A named view of one event hub; everything that a store keeps belongs to one of these.

    Event Hubs compares all three names without regard to case, and so do the stores.
    """

    fully_qualified_namespace: str
    """For example ``contoso.servicebus.windows.net``; for the emulator its host name."""

    eventhub_name: str
    name: str = "$Default"

    def __post_init__(self) -> None:
        """Refuse names that could not become part of a record's key."""
        _refuse_name("fully_qualified_namespace", self.fully_qualified_namespace)
        _refuse_name("eventhub_name", self.eventhub_name)
        _refuse_name("consumer group", self.name)

    @property
    def key(self) -> tuple[str, str, str]:
        """The three names in lower case: equal for names that mean the same group."""
        return (
            self.fully_qualified_namespace.lower(),
            self.eventhub_name.lower(),
            self.name.lower(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOwnership:
    """Who owns a partition, as a store confirmed it."""

    partition_id: str
    owner_id: str | None
    """``None``: released, free for anybody whatever its age."""

    etag: str
    last_modified: datetime
    """By the store's own clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipClaim:
    """A conditional write: make ``owner_id`` the owner if nobody wrote since ``expected_etag``.

    One shape for claiming, renewing, stealing, handing over and releasing.
    """

    partition_id: str
    owner_id: str | None
    """The owner to record; ``None`` releases."""

    expected_etag: str | None
    """``None``: only if no record exists yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """What became of one claim; ``ownership`` is the record as it now stands, where known."""

    claim: OwnershipClaim
    outcome: WriteOutcome
    ownership: PartitionOwnership | None = None
    """Set when won; when lost, the winner's record if the store happened to read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipSnapshot:
    """One answer to "who owns what": the records and the time at which they were read."""

    ownerships: tuple[PartitionOwnership, ...]
    as_of: datetime | None
    """The store's own clock at this answer; ``None`` where a store cannot tell its time."""

    resolution: timedelta = timedelta(0)
    """How coarse the store's times are: one second where they travel as HTTP dates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPosition:
    """Where to begin reading a partition. Build one with the class methods.

    Exactly one field is set, but for ``latest`` and ``earliest``, which set none.
    """

    offset: str | None = None
    sequence_number: int | None = None
    enqueued_time: datetime | None = None
    is_latest: bool = False
    is_inclusive: bool = False
    """Whether the event at the position itself is delivered."""

    def __post_init__(self) -> None:
        """Refuse a position that says two things, and a time without a zone."""
        given = [self.offset, self.sequence_number, self.enqueued_time, self.is_latest or None]
        if sum(value is not None for value in given) > 1:
            raise ConfigurationError(f"{self!r} names more than one position; give one")
        if self.enqueued_time is not None and self.enqueued_time.tzinfo is None:
            raise ConfigurationError(f"enqueued time {self.enqueued_time} needs a time zone")

    @classmethod
    def earliest(cls) -> "EventPosition":
        """The oldest event that the hub still has."""
        return cls(is_inclusive=True)

    @classmethod
    def latest(cls) -> "EventPosition":
        """Only what arrives after the receiver is there."""
        return cls(is_latest=True)

    @classmethod
    def from_sequence_number(
        cls, sequence_number: int, *, is_inclusive: bool = False
    ) -> "EventPosition":
        """After (or at) the event with this sequence number."""
        return cls(sequence_number=sequence_number, is_inclusive=is_inclusive)

    @classmethod
    def from_offset(cls, offset: str, *, is_inclusive: bool = False) -> "EventPosition":
        """After (or at) the event with this offset."""
        return cls(offset=offset, is_inclusive=is_inclusive)

    @classmethod
    def from_enqueued_time(cls, enqueued_time: datetime) -> "EventPosition":
        """The first event that the hub took in after this instant."""
        return cls(enqueued_time=enqueued_time)

    @property
    def is_earliest(self) -> bool:
        """Whether it names the oldest event there is."""
        return (
            self.offset is None
            and self.sequence_number is None
            and self.enqueued_time is None
            and not self.is_latest
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProperties:
    """What a hub says of one partition."""

    partition_id: str
    beginning_sequence_number: int
    last_enqueued_sequence_number: int
    """-1 for a partition that never had an event."""

    last_enqueued_offset: str
    last_enqueued_time: datetime | None
    is_empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LastEnqueued:
    """The newest event of a partition, as told along with the events received: for lag."""

    sequence_number: int
    offset: str
    enqueued_time: datetime | None


_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


def _nothing() -> Mapping[str, object]:
    return _NOTHING


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReceivedEvent:
    """One event as a handler gets it.

    Sources may decode a field when it is first read. Two events are equal if all their fields are,
    however they came.
    """

    body: bytes
    sequence_number: int
    """Rises by at least one from event to event within a partition."""

    offset: str
    enqueued_time: datetime
    """When the hub took it in, by the hub's clock."""

    partition_key: str | None = None
    properties: Mapping[str, object] = field(default_factory=_nothing)
    """What the publisher attached."""

    system_properties: Mapping[str, object] = field(default_factory=_nothing)
    """What the broker attached, and AMQP's own message properties."""

    content_type: str | None = None
    correlation_id: str | None = None
    message_id: str | None = None

    def body_as_str(self, encoding: str = "utf-8") -> str:
        """The body as text; raises ``UnicodeDecodeError`` where it is none."""
        return self.body.decode(encoding)

    def body_as_json(self, encoding: str = "utf-8") -> Any:  # noqa: ANN401 - JSON is anything
        """The body read as JSON; raises ``ValueError`` where it is none."""
        return json.loads(self.body_as_str(encoding))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReceivedEvent):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in EVENT_FIELDS)

    def __hash__(self) -> int:
        return hash((self.sequence_number, self.offset))

    def __reduce__(self) -> tuple[Callable[..., "ReceivedEvent"], tuple[object, ...]]:
        """Copy and pickle as a plain event: what a source keeps in it stays behind."""
        values = (getattr(self, name) for name in EVENT_FIELDS)
        return _event, tuple(dict(v) if isinstance(v, Mapping) else v for v in values)


EVENT_FIELDS: Final = tuple(each.name for each in fields(ReceivedEvent))
"""The fields of an event, by name and in order."""


def _event(*values: Any) -> ReceivedEvent:  # noqa: ANN401 - as the fields are
    return ReceivedEvent(**dict(zip(EVENT_FIELDS, values, strict=True)))
