"""Turns the records of Capture files into events."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from eventproc.errors import SourceRejectedError
from eventproc.models import REPLAYED_FROM, REPLAYED_FROM_PROPERTY, ReceivedEvent
from eventproc.sources._amqp.fields import plain, to_text, to_time
from eventproc.sources.capture._avro import Record

ENQUEUED_MS: Final = "x-opt-enqueued-time"
_TIME_FORMAT: Final = "%m/%d/%Y %I:%M:%S %p"
"""As .NET writes a time in the United States: ``8/31/2017 7:12:44 PM``."""


def number_of(record: Record) -> int:
    """Return the sequence number."""
    number: int = record["SequenceNumber"]
    return number


def time_of(record: Record) -> datetime:
    """Return when the hub received the event: to the millisecond, if the file says it."""
    milliseconds = (record["SystemProperties"] or {}).get(ENQUEUED_MS)
    if isinstance(milliseconds, int):
        return to_time(milliseconds)
    text = record["EnqueuedTimeUtc"]
    try:
        return datetime.strptime(text, _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise SourceRejectedError(
            f"event {number_of(record)} of a Capture file was enqueued at {text!r}, which is no "
            "time as Capture writes it, such as '8/31/2017 7:12:44 PM'"
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def offset_of(record: Record) -> int:
    """Return the offset as a number, to look for one.

    Raises:
        SourceRejectedError: offsets are no numbers, as in a geo-replicated namespace.
    """
    text = record["Offset"]
    if not text.isdecimal():
        raise SourceRejectedError(
            f"Capture files cannot be searched for an offset, because theirs are no numbers "
            f"({text!r}): give the sequence number of the event"
        )
    return int(text)


def properties_of(record: Record) -> Mapping[str, Any]:
    """Return the publisher's own properties, as they come from the hub."""
    found = {name: plain(value) for name, value in (record["Properties"] or {}).items()}
    found.pop(REPLAYED_FROM_PROPERTY, None)
    return found


def system_properties_of(record: Record) -> Mapping[str, Any]:
    """Return the service's annotations and AMQP's properties."""
    found = {name: plain(value) for name, value in (record["SystemProperties"] or {}).items()}
    if REPLAYED_FROM_PROPERTY in (record["Properties"] or ()):
        found[REPLAYED_FROM] = to_text(record["Properties"][REPLAYED_FROM_PROPERTY])
    return found


def event_of(record: Record) -> ReceivedEvent:
    """Return the event."""
    system = system_properties_of(record)
    return ReceivedEvent(
        body=record["Body"] or b"",
        sequence_number=record["SequenceNumber"],
        offset=record["Offset"],
        enqueued_time=time_of(record),
        partition_key=to_text(system.get("x-opt-partition-key")),
        properties=properties_of(record),
        system_properties=system,
        content_type=to_text(system.get("content-type")),
        correlation_id=to_text(system.get("correlation-id")),
        message_id=to_text(system.get("message-id")),
    )
