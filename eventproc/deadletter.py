"""An event that was given up, with its story: what a dead letter says."""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from traceback import format_exception
from typing import Final

from eventproc.models import ConsumerGroup, ReceivedEvent

TEXT_MAX: Final = 8 * 1024
"""Longest error message or traceback that is kept, in characters: hubs refuse large events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One event that was given up, and why.

    It may be stored more than once: should the processor die after that and before its checkpoint.
    ``letter_id`` is then the same.
    """

    event: ReceivedEvent
    group: ConsumerGroup
    partition_id: str
    owner_id: str
    """The processor that gave it up."""

    attempt_count: int
    """How often it failed, or was delivered and never heard of again."""

    error_type: str
    """The class of the last error; empty where processes died."""

    error_message: str
    traceback: str
    given_up_at: datetime
    """By the clock of the processor."""

    @property
    def letter_id(self) -> str:
        """Names the event: the same however often it is given up."""
        group = "/".join(self.group.key)
        return f"{group}/{self.partition_id}/{self.event.sequence_number}"

    def story(self) -> Mapping[str, str | int]:
        """Everything but the event itself, as plain values."""
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
        """The whole letter as a JSON object, for a file or a table.

        The body is text under ``body`` where it is UTF-8, else under ``body_base64``; so are values
        of properties that JSON has no form for.
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
        whole = {"letter_id": self.letter_id, **self.story(), "event": content}
        return json.dumps(_plain(whole), indent=1).encode()


def _plain(value: object) -> object:
    """The same in what every reader of JSON knows; what AMQP allows in a key or value is more."""
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


def told(error: Exception | None) -> tuple[str, str, str]:
    """Return class, message and traceback of an error; of none where processes died."""
    if error is None:
        message = "delivered again and again, and each time the process was not heard of again"
        return "", message, ""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else _full_name(kind)
    text = "".join(format_exception(error))
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - the user's code
        message = "(its text cannot be had)"
    return name, message[:TEXT_MAX], text[-TEXT_MAX:]


def _full_name(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
