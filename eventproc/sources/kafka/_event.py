"""Converts Kafka messages to ``ReceivedEvent``."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias

from eventproc.models import KAFKA_KEY, KAFKA_TOMBSTONE, REPLAYED_FROM, REPLAYED_FROM_PROPERTY
from eventproc.sources._amqp.fields import ServiceHeaders, decoded
from eventproc.sources._lazy_event import LazyEvent
from eventproc.sources.kafka._offsets import offset_text

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
"""The last possible time, in milliseconds since 1970."""


Headers: TypeAlias = Sequence[tuple[str, bytes | None]] | None
"""The publisher's headers, in order; a name may occur more than once."""

HEADERS_UNREADABLE: Final = "kafka-headers-unreadable"
"""System property: true if the event is without its headers, because the name of one is not UTF-8.
"""


class _UnreadableHeaders(list[tuple[str, bytes | None]]):
    """In place of headers that the client cannot return."""


class Error(Protocol):
    """An error of the client."""

    def name(self) -> str:
        """The name of the error in Kafka or librdkafka."""

    def str(self) -> str:
        """A description for people."""


class Message(Protocol):
    """A message of the client, or an error in place of one."""

    def error(self) -> Error | None:
        """The error, if this is not a message."""

    def partition(self) -> Any:  # noqa: ANN401 - of a message always an int
        """The partition of the message; ``None`` for some errors."""

    def offset(self) -> Any:  # noqa: ANN401 - of a message always an int
        """The offset of the message in its partition; ``None`` for some errors."""

    def leader_epoch(self) -> int | None:
        """The number of the leader that wrote the message, if the broker counts leaders."""

    def key(self) -> bytes | None:
        """The key of the message."""

    def value(self) -> bytes | None:
        """The body of the message; ``None`` for a tombstone."""

    def headers(self) -> Headers:
        """The publisher's headers."""

    def timestamp(self) -> tuple[int, int]:
        """The kind of the time, and the time in milliseconds since 1970."""

    def __len__(self) -> int:
        """The size of the value in bytes."""


class Details(NamedTuple):
    """What is seldom read of successive messages: each sequence has one value of each message.

    Python's garbage collector visits none of these values, apart from headers.
    """

    numbers: Sequence[int]
    """The offsets; those without gaps are a range."""

    times_ms: Sequence[int]
    keys: Sequence[bytes | None]
    headers: Sequence[Headers]

    @classmethod
    def of(cls, messages: Sequence[Message]) -> "Details":
        """Read them from messages, which are all of one class.

        ``map`` over the class's own method takes the least time: a third of ``methodcaller``.
        """
        kind = type(messages[0])
        return cls(
            in_short(list(map(kind.offset, messages))),
            [message.timestamp()[1] for message in messages],
            list(map(kind.key, messages)),
            _headers_of(kind, messages),
        )

    def of_service(self) -> "Details":
        """Return them as of messages of Event Hubs, which encodes some publishers' headers."""
        return self._replace(headers=[each and ServiceHeaders(each) for each in self.headers])

    def part(self, rows: slice) -> "Details":
        """Return those of some of the messages."""
        return Details(self.numbers[rows], self.times_ms[rows], self.keys[rows], self.headers[rows])


class KafkaEvent(LazyEvent, filled=("sequence_number", "body")):
    """A ``ReceivedEvent`` over the parts of a message; ``events_of`` makes them."""

    __slots__ = ("_details",)
    _details: Details
    is_tombstone: ClassVar[bool] = False

    __init__ = object.__init__  # Python makes an object without a call of it.

    def _decoded(self, name: str) -> Mapping[str, object]:
        if name == "offset":
            return {name: offset_text(self.sequence_number)}
        details = self._details
        row = details.numbers.index(self.sequence_number)
        if name == "enqueued_time":
            return {name: time_of(details.times_ms[row])}
        if name == "partition_key":
            return {name: partition_key(details.keys[row])}
        return _attached(details.keys[row], details.headers[row], is_tombstone=self.is_tombstone)


class _Tombstone(KafkaEvent):
    """An event without a value."""

    __slots__ = ()
    is_tombstone = True


class _Draft(KafkaEvent):
    """An event that is being filled: unlike those of a frozen class its slots can be set directly.

    That takes half of the time of calling the slots' own methods, the change of the class included.
    """

    __slots__ = ()
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__


def events_of(values: Sequence[bytes | None], details: Details) -> list[KafkaEvent]:
    """Return an event for each message, which keeps its value, and the details of all of them."""
    events: list[KafkaEvent] = [_Draft() for _ in values]
    for event, number, value in zip(events, details.numbers, values, strict=True):
        event.sequence_number = number  # type: ignore[misc]
        event._details = details  # noqa: SLF001 - of this file
        if value is None:
            event.body = b""  # type: ignore[misc]
            event.__class__ = _Tombstone
        else:
            event.body = value  # type: ignore[misc]
            event.__class__ = KafkaEvent
    return events


def _headers_of(kind: type[Message], messages: Sequence[Message]) -> Sequence[Headers]:
    """Return the headers of each message.

    The client raises an error for a name that is not UTF-8. It must not be asked for these headers
    again: it would return a list with null pointers, which ends the process.
    """
    found: list[Headers] = []
    reading = map(kind.headers, messages)
    while len(found) < len(messages):
        try:
            found.extend(reading)  # Those before an error stay in the list.
        except (SystemError, UnicodeDecodeError):
            found.append(_UnreadableHeaders())
    return found


def _attached(key: bytes | None, headers: Headers, *, is_tombstone: bool) -> dict[str, object]:
    """Return the fields that come from key and headers, and those that Kafka does not have."""
    system_properties: dict[str, object] = {}
    if is_tombstone:
        system_properties[KAFKA_TOMBSTONE] = True
    if isinstance(headers, _UnreadableHeaders):
        system_properties[HEADERS_UNREADABLE] = True
    if key is not None and isinstance(_plain(key), bytes):
        system_properties[KAFKA_KEY] = key
    is_of_service = isinstance(headers, ServiceHeaders)
    properties = _properties(decoded(headers) if is_of_service else headers) if headers else {}
    if REPLAYED_FROM_PROPERTY in properties:
        system_properties[REPLAYED_FROM] = properties.pop(REPLAYED_FROM_PROPERTY)
    content_type = properties.get("content-type")
    return {
        "properties": properties,
        "system_properties": system_properties,
        "content_type": content_type if isinstance(content_type, str) else None,
        "correlation_id": None,
        "message_id": None,
    }


def in_short(numbers: list[int]) -> Sequence[int]:
    """Return numbers without gaps as a range; there is at least one."""
    without_gaps = range(numbers[0], numbers[0] + len(numbers))
    is_range = numbers[-1] == without_gaps[-1] and numbers == list(without_gaps)
    return without_gaps if is_range else numbers


def rises(numbers: Sequence[int]) -> bool:
    """Return whether each number is higher than the one before.

    To sort what is sorted, and to count, takes a quarter of the time of comparing each pair.
    """
    if isinstance(numbers, range):
        return True
    return len(set(numbers)) == len(numbers) and sorted(numbers) == list(numbers)


def partition_key(key: bytes | None) -> str | None:
    """Return a message's key as text; bytes that are no text are written as escapes."""
    return None if key is None else key.decode(errors="backslashreplace")


def time_of(time_ms: int) -> datetime:
    """Return a message's time: the broker's or the producer's, depending on the topic.

    A producer may send any number, for example microseconds. Values out of range are clamped to
    1970 or to the last possible time.
    """
    return _EPOCH + timedelta(milliseconds=min(max(0, time_ms), LAST_MS))


def _properties(headers: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Return the headers by name; a name that occurs repeatedly has a tuple of its values."""
    properties: dict[str, object] = {}
    repeated: dict[str, list[object]] = {}
    for name, value in headers:
        plain = _plain(value) if isinstance(value, bytes) else value
        if name in properties:
            repeated.setdefault(name, [properties[name]]).append(plain)
        else:
            properties[name] = plain
    return properties | {name: tuple(values) for name, values in repeated.items()}


def _plain(value: bytes) -> str | bytes:
    """Return the value as text if it is valid UTF-8, the same as for events over AMQP."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
