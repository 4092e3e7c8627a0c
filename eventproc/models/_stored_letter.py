"""A dead letter as a sink has it, and how one is read from JSON."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from eventproc._base.bounded_json import read_json
from eventproc.errors import ConfigurationError, LetterDamagedError
from eventproc.models._dead_letter import DeadLetter, event_of
from eventproc.models._events import ReceivedEvent
from eventproc.models._group import ConsumerGroup

_BYTES: Final = {"base64"}
"""The only key of a JSON object that stands for bytes."""

LETTER_BYTES_MAX: Final = 512 * 1024 * 1024
"""Longest JSON of a letter: that of the largest message of any broker, in Base64."""

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

    A processor that dies may store an event twice, and after a reset it may fail again: the newest
    copy counts. The handle of the result is a tuple of the handles of all copies.
    """
    copies_by_event: dict[object, list[StoredLetter]] = {}
    damaged = []
    for each in found:
        if each.letter is None:
            damaged.append(replace(each, handle=(each.handle,)))
        else:
            copies_by_event.setdefault(event_of(each.letter), []).append(each)
    letters = [
        replace(max(copies, key=_given_up_at), handle=tuple(copy.handle for copy in copies))
        for copies in copies_by_event.values()
    ]
    return sorted(letters, key=_position) + damaged


def _given_up_at(stored: StoredLetter) -> datetime:
    assert stored.letter is not None, "damaged ones have none"
    return stored.letter.given_up_at


def _position(stored: StoredLetter) -> tuple[tuple[str, str, str], str, int, datetime]:
    letter = stored.letter
    assert letter is not None, "damaged ones have none"
    event = letter.event
    return letter.group.key, letter.partition_id, event.sequence_number, event.enqueued_time


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
    content = whole.get("event") if isinstance(whole, dict) else None
    if not isinstance(content, dict):
        raise LetterDamagedError("it is not a JSON object with an event")
    event = ReceivedEvent(
        body=_body(content),
        sequence_number=0,
        offset="",
        enqueued_time=_NO_TIME,
        partition_key=_text(content, "partition_key"),
        properties=_restored(_mapping(content, "properties")),
        system_properties=_restored(_mapping(content, "system_properties")),
        content_type=_text(content, "content_type"),
        correlation_id=_text(content, "correlation_id"),
        message_id=_text(content, "message_id"),
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
    try:
        group = ConsumerGroup(
            fully_qualified_namespace=_known(details, "fully_qualified_namespace"),
            eventhub_name=_known(details, "eventhub_name"),
            name=_known(details, "consumer_group"),
        )
    except ConfigurationError as error:
        raise LetterDamagedError(str(error)) from error
    return DeadLetter(
        event=replace(
            event,
            sequence_number=_number(details, "sequence_number"),
            offset=_known(details, "offset"),
            enqueued_time=_time(details, "enqueued_time"),
        ),
        group=group,
        partition_id=_known(details, "partition_id"),
        owner_id=_known(details, "owner_id"),
        attempt_count=_number(details, "attempt_count"),
        error_type=_known(details, "error_type"),
        # A hub with a small limit has letters without these two.
        error_message=_text(details, "error_message") or "",
        traceback=_text(details, "traceback") or "",
        given_up_at=_time(details, "given_up_at"),
    )


def _text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is None or isinstance(value, str):
        return value
    raise LetterDamagedError(f"{name} is {value!r}, and not a text")


def _known(values: Mapping[str, Any], name: str) -> str:
    value = _text(values, name)
    if value is None:
        raise LetterDamagedError(f"it has no {name}")
    return value


def _number(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise LetterDamagedError(f"{name} is {value!r}, and not a whole number")


def _time(values: Mapping[str, Any], name: str) -> datetime:
    text = _known(values, name)
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise LetterDamagedError(f"{name} is {text!r}, and not a time") from error
    if time.tzinfo is None:
        raise LetterDamagedError(f"{name} is {text!r}, without a time zone")
    return time


def _mapping(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = values.get(name, {})
    if isinstance(value, dict):
        return value
    raise LetterDamagedError(f"{name} is {value!r}, and not an object")


def _body(content: Mapping[str, Any]) -> bytes:
    text = _text(content, "body")
    if text is not None:
        return text.encode()
    encoded = _known(content, "body_base64")
    try:
        return b64decode(encoded, validate=True)
    except Base64Error as error:
        raise LetterDamagedError("body_base64 is not Base64") from error


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
