"""Dead letters: an event that was given up, with its error and where it came from."""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from math import isfinite
from traceback import format_exception
from typing import Final

from eventproc._base.public_names import public_name
from eventproc.models._checkpoint import QUEUE_OFFSET_PREFIX
from eventproc.models._events import ReceivedEvent
from eventproc.models._group import ConsumerGroup

TEXT_MAX: Final = 8 * 1024
"""Longest error message or traceback in a dead letter, in characters: hubs refuse large events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One event that was given up, and why.

    It may be stored more than once, with the same ``letter_id``, if the processor dies between
    storing it and its checkpoint.
    """

    event: ReceivedEvent
    group: ConsumerGroup
    partition_id: str
    owner_id: str
    """The processor that gave it up."""

    attempt_count: int
    """How often the handler failed on it, or the process died while it was delivered."""

    error_type: str
    """The class of the last error; empty if processes died."""

    error_message: str
    traceback: str
    given_up_at: datetime
    """The time on the processor's clock."""

    @property
    def letter_id(self) -> str:
        """An id of the event: the same however often it is given up.

        A hub that was deleted and created again uses its sequence numbers again, so events of both
        may have the same id. They differ in ``event.enqueued_time``.
        """
        group = "/".join(self.group.key)
        return f"{group}/{self.partition_id}/{self.event.sequence_number}"

    def details(self) -> Mapping[str, str | int]:
        """Everything except the event's contents, as plain values."""
        event = self.event
        return {
            "fully_qualified_namespace": self.group.fully_qualified_namespace,
            "eventhub_name": self.group.eventhub_name,
            "consumer_group": self.group.name,
            "partition_id": self.partition_id,
            "sequence_number": event.sequence_number,
            "offset": event.offset,
            "enqueued_time": event.enqueued_time.isoformat(),
            "owner_id": self.owner_id,
            "attempt_count": self.attempt_count,
            "error_type": self.error_type,
            "error_message": self.error_message,
            "traceback": self.traceback,
            "given_up_at": self.given_up_at.isoformat(),
        }

    def to_json(self) -> bytes:
        """The whole dead letter as a JSON object, for a file or a table.

        A body in UTF-8 is text under ``body``, any other is under ``body_base64``. Bytes among the
        properties become ``{"base64": ...}``, and other values that JSON lacks become text.
        """
        event = self.event
        try:
            body = {"body": event.body.decode()}
        except UnicodeDecodeError:
            body = {"body_base64": b64encode(event.body).decode()}
        content = {
            **body,
            "partition_key": event.partition_key,
            "properties": event.properties,
            "system_properties": event.system_properties,
            "content_type": event.content_type,
            "correlation_id": event.correlation_id,
            "message_id": event.message_id,
        }
        whole = {"letter_id": self.letter_id, **self.details(), "event": content}
        return json.dumps(_plain(whole), indent=1).encode()


def event_of(letter: DeadLetter) -> tuple[str, object]:
    """Return what identifies the event of a letter, also in a hub that was created again.

    That is the id of the letter and when the event was enqueued: to the second, because some files
    of Event Hubs Capture have no more. A message of a queue may have the time at which it arrived,
    and its number is one of a store, which may be another one by now: there it is the content.
    """
    event = letter.event
    if event.offset.startswith(QUEUE_OFFSET_PREFIX):
        return letter.letter_id, (event.message_id, sha256(event.body).digest())
    return letter.letter_id, event.enqueued_time.replace(microsecond=0)


def _plain(value: object) -> object:
    """Convert a value to standard JSON types: AMQP allows more kinds of keys and values."""
    match value:
        case Mapping():
            return {_name(key): _plain(content) for key, content in value.items()}
        case list() | tuple():
            return [_plain(content) for content in value]
        case bytes():
            return {"base64": b64encode(value).decode()}
        case datetime():
            return value.isoformat()
        case bool() | int() | str() | None:
            return value
        case _:
            return value if isinstance(value, float) and isfinite(value) else str(value)


def _name(key: object) -> str:
    return key.decode(errors="replace") if isinstance(key, bytes) else str(key)


def describe_error(error: Exception | None) -> tuple[str, str, str]:
    """Return class, message and traceback of an error; ``None`` stands for processes that died."""
    if error is None:
        message = "delivered several times, and each time the process died before it was handled"
        return "", message, ""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else public_name(kind)
    text = "".join(format_exception(error))
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - the user's code
        message = "(its text cannot be had)"
    return name, _unicode(message[:TEXT_MAX]), _unicode(text[-TEXT_MAX:])


def _unicode(text: str) -> str:
    """Return the text with escapes for lone surrogates, which no sink could encode."""
    return text.encode(errors="backslashreplace").decode()
