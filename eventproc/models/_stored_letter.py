"""A dead letter as a sink has it, and how one is read from JSON."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec

from eventproc._base.bounded_json import read_json
from eventproc.errors import ConfigurationError, LetterDamagedError
from eventproc.models._dead_letter import DeadLetter
from eventproc.models._events import ReceivedEvent
from eventproc.models._group import ConsumerGroup

_BYTES: Final = {"base64"}
"""The only key of a JSON object that stands for bytes."""

LETTER_BYTES_MAX: Final = 512 * 1024 * 1024
"""Longest JSON of a letter: that of the largest message of any broker, in Base64."""

_T = TypeVar("_T")
_Time: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLetter:
    """A dead letter that a sink has now, or something in its place that cannot be read."""

    place: str
    """Where it is, for people: a blob's name, a partition and number, a place in a queue."""

    letter: DeadLetter | None
    """``None`` if it is damaged."""

    damage: str = ""
    """Why it cannot be read."""

    raw: bytes = b""
    """What is stored, if it is damaged."""

    handle: object = None
    """By this the reader finds it, to remove it."""


def in_order(found: Iterable[StoredLetter]) -> list[StoredLetter]:
    """Return letters by partition and sequence number, each event once, and then what is damaged.

    A processor that dies may store an event twice. The handle of the result is a tuple of the
    handles of all copies.
    """
    copies_by_id: dict[str, list[StoredLetter]] = {}
    damaged = []
    for each in found:
        if each.letter is None:
            damaged.append(replace(each, handle=(each.handle,)))
        else:
            copies_by_id.setdefault(each.letter.letter_id, []).append(each)
    letters = [
        replace(copies[0], handle=tuple(copy.handle for copy in copies))
        for copies in copies_by_id.values()
    ]
    return sorted(letters, key=_position) + damaged


def _position(stored: StoredLetter) -> tuple[tuple[str, str, str], str, int]:
    letter = stored.letter
    assert letter is not None, "damaged ones have none"
    return letter.group.key, letter.partition_id, letter.event.sequence_number


class _Contents(msgspec.Struct):
    """The contents of an event, as ``DeadLetter.to_json`` writes them."""

    body: str | None = None
    body_base64: bytes = b""
    partition_key: str | None = None
    properties: dict[str, Any] = {}
    system_properties: dict[str, Any] = {}
    content_type: str | None = None
    correlation_id: str | None = None
    message_id: str | None = None


class _Details(msgspec.Struct):
    """``DeadLetter.details``, as they are stored."""

    fully_qualified_namespace: str
    eventhub_name: str
    consumer_group: str
    partition_id: str
    sequence_number: int
    offset: str
    enqueued_time: _Time
    owner_id: str
    attempt_count: int
    error_type: str
    given_up_at: _Time
    error_message: str | None = None
    """A hub with a small limit has letters without this and the traceback."""

    traceback: str | None = None


def letter_from_json(text: bytes) -> DeadLetter:
    """Read what ``DeadLetter.to_json`` wrote.

    Values that JSON lacks, other than bytes, have become text.

    Raises:
        LetterDamagedError: it is not a dead letter; the message says why.
    """
    try:
        whole = read_json(text, length_max=LETTER_BYTES_MAX)
    except ValueError as error:
        raise LetterDamagedError(f"it is not JSON ({error})") from error
    if not isinstance(whole, dict) or "event" not in whole:
        raise LetterDamagedError("it is not a JSON object with an event")
    found = _converted(whole["event"], _Contents)
    event = ReceivedEvent(
        body=found.body_base64 if found.body is None else found.body.encode(),
        sequence_number=0,
        offset="",
        enqueued_time=_NO_TIME,
        partition_key=found.partition_key,
        properties=_restored(found.properties),
        system_properties=_restored(found.system_properties),
        content_type=found.content_type,
        correlation_id=found.correlation_id,
        message_id=found.message_id,
    )
    return letter_from_details(whole, event)


def letter_from_details(details: Mapping[str, object], event: ReceivedEvent) -> DeadLetter:
    """Return the letter with these ``DeadLetter.details``.

    Args:
        details: With the position of the event that was given up.
        event: Its contents; the position is not used.

    Raises:
        LetterDamagedError: a detail is missing, or is of another kind.
    """
    found = _converted(details, _Details)
    try:
        group = ConsumerGroup(
            fully_qualified_namespace=found.fully_qualified_namespace,
            eventhub_name=found.eventhub_name,
            name=found.consumer_group,
        )
    except ConfigurationError as error:
        raise LetterDamagedError(str(error)) from error
    return DeadLetter(
        event=replace(
            event,
            sequence_number=found.sequence_number,
            offset=found.offset,
            enqueued_time=found.enqueued_time,
        ),
        group=group,
        partition_id=found.partition_id,
        owner_id=found.owner_id,
        attempt_count=found.attempt_count,
        error_type=found.error_type,
        error_message=found.error_message or "",
        traceback=found.traceback or "",
        given_up_at=found.given_up_at,
    )


def _converted(value: object, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise LetterDamagedError(f"it is not a dead letter: {error}") from error


def _restored(value: Any) -> Any:  # noqa: ANN401 - as JSON is
    """Return the value with bytes where ``to_json`` had to write an object for them."""
    match value:
        case dict() if value.keys() == _BYTES and isinstance(value["base64"], str):
            try:
                return b64decode(value["base64"], validate=True)
            except Base64Error:
                return value
        case dict():
            return {name: _restored(content) for name, content in value.items()}
        case list():
            return [_restored(content) for content in value]
        case _:
            return value
