"""Events as they are received and published, batches of them, and positions in a partition.

A time is an aware ``datetime``. A partition id is a string even if it looks like a number.
"""

import json
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import accumulate, chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, overload

from eventproc._base.settings import check_settings
from eventproc.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPosition:
    """Where to begin reading a partition. Build one with the class methods.

    Exactly one of ``offset``, ``sequence_number`` and ``enqueued_time`` is set, with two
    exceptions: ``latest`` and ``earliest`` set none; and an offset may come with the sequence
    number of the same event. A source then uses the offset, or the number if the service does not
    accept the offset any more.
    """

    offset: str | None = None
    sequence_number: int | None = None
    enqueued_time: datetime | None = None
    is_latest: bool = False
    is_inclusive: bool = False
    """Whether the event at the position itself is delivered."""

    def __post_init__(self) -> None:
        """Refuse more than one position, and a time without a time zone."""
        check_settings(self)
        event = self.sequence_number if self.offset is None else self.offset
        given = [event, self.enqueued_time, self.is_latest or None]
        if sum(value is not None for value in given) > 1:
            raise ConfigurationError(f"{self!r} names more than one position; give one")
        if self.enqueued_time is not None and self.enqueued_time.tzinfo is None:
            raise ConfigurationError(f"enqueued time {self.enqueued_time} needs a time zone")

    @classmethod
    def earliest(cls) -> "EventPosition":
        """From the oldest event that the hub still has."""
        return cls(is_inclusive=True)

    @classmethod
    def latest(cls) -> "EventPosition":
        """Only events that arrive after the receiver is open."""
        return cls(is_latest=True)

    @classmethod
    def from_sequence_number(
        cls, sequence_number: int, *, is_inclusive: bool = False
    ) -> "EventPosition":
        """After (or at) the event with this sequence number."""
        return cls(sequence_number=sequence_number, is_inclusive=is_inclusive)

    @classmethod
    def from_offset(
        cls, offset: str, *, sequence_number: int | None = None, is_inclusive: bool = False
    ) -> "EventPosition":
        """After (or at) the event with this offset, and this sequence number if it is known."""
        return cls(offset=offset, sequence_number=sequence_number, is_inclusive=is_inclusive)

    @classmethod
    def from_enqueued_time(cls, enqueued_time: datetime) -> "EventPosition":
        """From the first event that the hub received at this time or later."""
        return cls(enqueued_time=enqueued_time, is_inclusive=True)

    @property
    def is_earliest(self) -> bool:
        """Whether reading begins at the oldest event that the hub still has."""
        return (
            self.offset is None
            and self.sequence_number is None
            and self.enqueued_time is None
            and not self.is_latest
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProperties:
    """What a hub reports about one partition."""

    partition_id: str
    beginning_sequence_number: int
    """Of the oldest event that the hub still has; without meaning if the partition is empty."""

    last_enqueued_sequence_number: int
    """Of the newest event that the partition ever had, also if the hub has deleted the event
    since; -1 for a partition that never had an event."""

    last_enqueued_offset: str
    """Of the same event; without meaning if the number is -1."""

    last_enqueued_time: datetime | None
    """Of the same event; ``None`` if the number is -1."""

    is_empty: bool
    """Whether the hub has no event of the partition now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastEnqueued:
    """The newest event of a partition, as reported along with received events; gives the lag."""

    sequence_number: int
    offset: str
    enqueued_time: datetime | None


REPLAYED_FROM: Final = "eventproc-replayed-from"
"""System property of an event that was replayed from a dead letter: the letter's id."""

REPLAYED_FROM_PROPERTY: Final = "eventproc_replayed_from"
"""The property under which a replay publishes it. Sources make it a system property, so that a
handler gets the properties of the first publisher."""

KAFKA_TOMBSTONE: Final = "kafka-tombstone"
"""System property of an event of Kafka: true if the message has no value (a tombstone), which
deletes its key in a compacted topic. The body is then empty, the same as for an empty value."""

KAFKA_KEY: Final = "kafka-key"
"""System property of an event of Kafka: the message's key in bytes, if it is not valid UTF-8."""

UNDECODED: Final = "eventproc-undecoded"
"""System property of an event in a dead letter: why it could not be decoded. The body is then the
whole message as the source received it."""

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


def _nothing() -> Mapping[str, object]:
    return _NOTHING


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReceivedEvent:
    """One event as a handler gets it.

    Sources may decode a field when it is first read. Two events are equal if all their fields are,
    whatever source they come from.
    """

    body: bytes
    sequence_number: int
    """Rises by at least one from event to event within a partition."""

    offset: str
    enqueued_time: datetime
    """When the hub received it, by the hub's clock."""

    partition_key: str | None = None
    properties: Mapping[str, object] = field(default_factory=_nothing)
    """The application properties that the publisher set."""

    system_properties: Mapping[str, object] = field(default_factory=_nothing)
    """The broker's annotations, and the standard AMQP message properties."""

    content_type: str | None = None
    correlation_id: str | None = None
    message_id: str | None = None

    @property
    def encoded(self) -> bytes | None:
        """The whole message, encoded in AMQP 1.0 as Event Hubs sent it.

        ``None`` from every other service, and from ``ReceivePath.PUBLIC``.
        """
        return None

    def storable(self) -> "ReceivedEvent":
        """Return the event; if a field cannot be decoded, one with the whole message as its body.

        That one has ``UNDECODED`` among its system properties, and every field that is known.
        """
        return self

    def body_as_str(self, encoding: str = "utf-8") -> str:
        """The body as text; raises ``UnicodeDecodeError`` if it cannot be decoded."""
        return self.body.decode(encoding)

    def body_as_json(self, encoding: str = "utf-8") -> Any:  # noqa: ANN401 - JSON is anything
        """The body parsed as JSON; raises ``ValueError`` if it is not valid JSON."""
        try:
            return json.loads(self.body_as_str(encoding))
        except RecursionError:
            raise ValueError("the body is nested too deeply") from None

    @property
    def replayed_from(self) -> str | None:
        """The id of the dead letter that this event was replayed from; ``None`` for any other."""
        found = self.system_properties.get(REPLAYED_FROM)
        return found if isinstance(found, str) else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReceivedEvent):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in EVENT_FIELDS)

    def __hash__(self) -> int:
        return hash((self.sequence_number, self.offset))

    def __reduce__(self) -> tuple[Callable[..., "ReceivedEvent"], tuple[object, ...]]:
        """Copy and pickle as a plain event, without the data that a source keeps for decoding."""
        values = (getattr(self, name) for name in EVENT_FIELDS)
        return _event, tuple(dict(v) if isinstance(v, Mapping) else v for v in values)


EVENT_FIELDS: Final = tuple(each.name for each in fields(ReceivedEvent))
"""The fields of an event, by name and in order."""


def _event(*values: Any) -> ReceivedEvent:  # noqa: ANN401 - as the fields are
    return ReceivedEvent(**dict(zip(EVENT_FIELDS, values, strict=True)))


if TYPE_CHECKING:
    import pyarrow as pa


class EventBatch(Sequence[ReceivedEvent]):
    """Received events of one partition, in order, from which columns are built without objects.

    An element is made when it is read. A slice is a batch again, and its cost does not depend on
    its length.
    """

    @overload
    def __getitem__(self, index: int) -> ReceivedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> "EventBatch": ...
    @abstractmethod
    def __getitem__(self, index: int | slice) -> "ReceivedEvent | EventBatch":
        """Return an event, or a batch of some; a slice must be without a step."""

    @property
    @abstractmethod
    def body_byte_count(self) -> int:
        """The bytes of all bodies together."""

    @abstractmethod
    def columns(self, names: Sequence[str], partition_id: str) -> "pa.RecordBatch":
        """Return these columns, a row for each event; see ``eventproc.columns``.

        Raises:
            SourceRejectedError: an event cannot be decoded.
        """


def body_bytes(events: Sequence[ReceivedEvent]) -> int:
    """Return the bytes of all bodies together; those of a batch are not decoded for it."""
    if isinstance(events, EventBatch):
        return events.body_byte_count
    return sum(len(event.body) for event in events)


class JoinedBatch(EventBatch):
    """Batches that were received one after another, as one."""

    def __init__(self, parts: Sequence[EventBatch]) -> None:
        """Join them in this order; none is empty."""
        self._parts = parts
        self._ends = list(accumulate(map(len, parts)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> ReceivedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> "JoinedBatch": ...
    def __getitem__(self, index: int | slice) -> "ReceivedEvent | JoinedBatch":
        rows = range(len(self))[index]
        if isinstance(rows, int):
            at = bisect_right(self._ends, rows)
            return self._parts[at][rows - self._ends[at] + len(self._parts[at])]
        if rows.step != 1:
            raise ValueError("a batch has no slices with a step")
        parts = []
        for part, end in zip(self._parts, self._ends, strict=True):
            begin = end - len(part)
            wanted = part[max(rows.start - begin, 0) : max(rows.stop - begin, 0)]
            if len(wanted):
                parts.append(wanted)
        return JoinedBatch(parts)

    def __iter__(self) -> Iterator[ReceivedEvent]:
        return chain.from_iterable(self._parts)

    @property
    def body_byte_count(self) -> int:
        """The bytes of all bodies together."""
        return sum(part.body_byte_count for part in self._parts)

    def columns(self, names: Sequence[str], partition_id: str) -> "pa.RecordBatch":
        """Return these columns; those of the parts are copied."""
        import pyarrow as pa  # noqa: PLC0415 - the extra ``columns`` installs it

        columns = [part.columns(names, partition_id) for part in self._parts]
        return pa.concat_batches(columns)


def joined(parts: Sequence[Sequence[ReceivedEvent]]) -> Sequence[ReceivedEvent]:
    """Return events that one link delivered one after another as one sequence."""
    if len(parts) == 1:
        return parts[0]
    batches = [part for part in parts if isinstance(part, EventBatch)]
    return JoinedBatch(batches) if len(batches) == len(parts) else list(chain(*parts))


PropertyValue = str | bytes | bool | int | float | None
"""A value that a property may have in every service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingEvent:
    """One event for an ``EventPublisher``. What a service does not accept, ``publish`` refuses."""

    body: bytes | None
    """``None`` is a Kafka message without value (a tombstone); an event hub has no such events."""

    partition_id: str | None = None
    """The partition to publish to; by default the service chooses one, by the key if there is
    one."""

    partition_key: str | None = None
    """Events of one key get into one partition."""

    properties: Mapping[str, PropertyValue | list[PropertyValue]] = field(default_factory=dict)
    """Kafka sends them as headers. A list stands for a header that occurs several times."""

    content_type: str | None = None
    correlation_id: str | None = None
    message_id: str | None = None
    """These three are properties of AMQP; Kafka has no place for them."""
