"""Events of Capture files.

Rule: records are taken apart as soon as they are decoded, into one sequence for each field.
Python's garbage collector visits records again and again while they wait, but not their values
(``docs/decisions/0102-kafka-messages-are-taken-apart-at-once.md`` says what that is worth).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from operator import itemgetter
from typing import Any, Final, Self, overload

from eventproc.errors import SourceRejectedError
from eventproc.models import REPLAYED_FROM, REPLAYED_FROM_PROPERTY, ReceivedEvent
from eventproc.sources._amqp.fields import plain, to_text, to_time

FIELDS: Final = (
    "SequenceNumber",
    "Offset",
    "EnqueuedTimeUtc",
    "SystemProperties",
    "Properties",
    "Body",
)
"""The fields of a record, in the order in which ``CapturedEvents`` takes them."""

ENQUEUED_MS: Final = "x-opt-enqueued-time"
_TIME_FORMAT: Final = "%m/%d/%Y %I:%M:%S %p"
"""As .NET writes a time in the United States: ``8/31/2017 7:12:44 PM``."""

_VALUES: Final = itemgetter(*FIELDS)
_MAPS: Final = (FIELDS.index("SystemProperties"), FIELDS.index("Properties"))

Values = Mapping[str, Any]


class CapturedEvents(Sequence[ReceivedEvent]):
    """Events of a partition, in order, which are made when they are read."""

    __slots__ = ("_fields", "bodies", "numbers", "offsets", "properties", "system", "time_texts")

    def __init__(self, fields: Sequence[Sequence[Any]]) -> None:
        """Keep the values of each of ``FIELDS``, which nobody modifies later."""
        self._fields = fields
        self.numbers: Sequence[int] = fields[0]
        self.offsets: Sequence[str] = fields[1]
        self.time_texts: Sequence[str] = fields[2]
        self.system: Sequence[Values] = fields[3]
        self.properties: Sequence[Values] = fields[4]
        self.bodies: Sequence[bytes | None] = fields[5]

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]]) -> Self | None:
        """Return the events of these records; ``None`` if there are none.

        Other writers than Capture may have null in place of an empty map.
        """
        fields: list[Sequence[Any]] = list(zip(*map(_VALUES, records), strict=True))
        for at in _MAPS:
            if fields and None in fields[at]:
                fields[at] = [each or {} for each in fields[at]]
        return cls(fields) if fields else None

    @classmethod
    def joined(cls, parts: Iterable["CapturedEvents"]) -> Self:
        """Return these, which follow one another, as one."""
        fields = zip(*(part._fields for part in parts), strict=True)
        return cls([list(chain.from_iterable(values)) for values in fields])

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> ReceivedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> ReceivedEvent | Self:
        if isinstance(index, slice):
            return type(self)([field[index] for field in self._fields])
        values: Sequence[Any] = [field[index] for field in self._fields]
        return _event(*values)

    def __iter__(self) -> Iterator[ReceivedEvent]:
        return map(_event, *self._fields)

    @property
    def body_byte_count(self) -> int:
        """The bytes of all bodies together."""
        return sum(map(len, filter(None, self.bodies)))


def _event(  # noqa: PLR0917 - the fields of a record
    number: int, offset: str, time_text: str, system: Values, properties: Values, body: bytes | None
) -> ReceivedEvent:
    annotations = system_properties_of(system, properties)
    return ReceivedEvent(
        body=body or b"",
        sequence_number=number,
        offset=offset,
        enqueued_time=time_of(number, time_text, system),
        partition_key=to_text(annotations.get("x-opt-partition-key")),
        properties=properties_of(properties),
        system_properties=annotations,
        content_type=to_text(annotations.get("content-type")),
        correlation_id=to_text(annotations.get("correlation-id")),
        message_id=to_text(annotations.get("message-id")),
    )


def time_of(number: int, text: str, system: Values) -> datetime:
    """Return when the hub received an event: to the millisecond, if the file says it."""
    milliseconds = system.get(ENQUEUED_MS)
    if isinstance(milliseconds, int):
        return to_time(milliseconds)
    try:
        return datetime.strptime(text, _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise SourceRejectedError(
            f"event {number} of a Capture file was enqueued at {text!r}, which is no time as "
            "Capture writes it, such as '8/31/2017 7:12:44 PM'"
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def properties_of(properties: Values) -> Values:
    """Return the publisher's own properties, as they come from the hub."""
    found = {name: plain(value) for name, value in properties.items()}
    found.pop(REPLAYED_FROM_PROPERTY, None)
    return found


def system_properties_of(system: Values, properties: Values) -> Values:
    """Return the service's annotations and AMQP's properties."""
    found = {name: plain(value) for name, value in system.items()}
    if REPLAYED_FROM_PROPERTY in properties:
        found[REPLAYED_FROM] = to_text(properties[REPLAYED_FROM_PROPERTY])
    return found
