"""Where reading begins and ends, as people and other connectors write it. Pure.

The JSON form is that of the Scala connector for Event Hubs:
``{"offset": "-1", "seqNo": -1, "enqueuedTime": null, "isInclusive": true}``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from eventproc.core.numbering import numbering_in
from eventproc.errors import ConfigurationError
from eventproc.models import Checkpoint, EventPosition, Numbering

CHECKPOINTS: Final = "checkpoints"
_FORMS: Final = (
    "give earliest, latest, a time such as 2026-01-31T08:00:00Z, a sequence number such as 4711, "
    'or JSON such as {"seqNo": 4711} or {"enqueuedTime": "2026-01-31T08:00:00Z"}'
)
_BEFORE_ALL: Final = "-1"
_AFTER_ALL: Final = "@latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """A position for each partition of a hub."""

    otherwise: EventPosition
    """For a partition that is not named."""

    by_partition: Mapping[str, EventPosition] = field(default_factory=dict)
    is_by_checkpoints: bool = False
    """After the checkpoints of the consumer group, in its store; ``otherwise`` without one."""

    def of(self, partition_id: str) -> EventPosition:
        """The position of one partition."""
        return self.by_partition.get(partition_id, self.otherwise)


def parse_positions(
    name: str, one: str | None, several: str | None, *, otherwise: EventPosition
) -> Positions:
    """Read the pair of options ``startingPosition`` and ``startingPositions``, or the endings.

    Args:
        name: ``startingPosition`` or ``endingPosition``, for messages.
        one: the option for all partitions.
        several: the option for each partition: JSON, or ``checkpoints``.
        otherwise: where neither says anything; with ``checkpoints`` it is the oldest event, so
            that nothing is missed.

    Raises:
        ConfigurationError: one of them has another form.
    """
    default = otherwise if one is None else parse_position(name, one)
    if several is None:
        return Positions(otherwise=default)
    if several.strip().lower() == CHECKPOINTS:
        if one is None:
            default = EventPosition.earliest()
        return Positions(otherwise=default, is_by_checkpoints=True)
    return Positions(otherwise=default, by_partition=_by_partition(f"{name}s", several))


def parse_position(option: str, text: str) -> EventPosition:
    """Read one position.

    Raises:
        ConfigurationError: it has another form; the message names the option.
    """
    text = text.strip()
    if text.startswith("{"):
        return _from_json(option, _json(option, text))
    word = text.lower()
    if word == "earliest":
        return EventPosition.earliest()
    if word == "latest":
        return EventPosition.latest()
    if word.isdecimal() and word.isascii():
        return EventPosition.from_sequence_number(int(word), is_inclusive=True)
    return EventPosition(enqueued_time=_time(option, text), is_inclusive=True)


def _by_partition(option: str, text: str) -> dict[str, EventPosition]:
    document = _json(option, text)
    if not isinstance(document, dict):
        raise ConfigurationError(
            f"{option} is {text!r}: give checkpoints, or JSON that names partitions, such as "
            '{"0": "earliest", "1": {"seqNo": 4711}}'
        )
    return {
        _partition_id(option, key): (
            _from_json(option, value)
            if isinstance(value, dict)
            else parse_position(option, str(value))
        )
        for key, value in document.items()
    }


def _partition_id(option: str, key: str) -> str:
    """The partition that a key names: alone, or as the Scala connector does."""
    if not key.startswith("{"):
        return key
    named = _json(option, key)
    if not isinstance(named, dict) or "partitionId" not in named:
        raise ConfigurationError(f"{option} has the key {key!r}, which names no partitionId")
    return str(named["partitionId"])


def _from_json(option: str, document: object) -> EventPosition:
    """A position in the Scala connector's form, in which -1 and null mean: not given."""
    if not isinstance(document, dict):
        raise ConfigurationError(f"{option} is {document!r}: {_FORMS}")
    unknown = set(document) - {"offset", "seqNo", "enqueuedTime", "isInclusive"}
    if unknown:
        raise ConfigurationError(
            f"{option} has {', '.join(sorted(map(repr, unknown)))}, which is none of offset, "
            "seqNo, enqueuedTime and isInclusive"
        )
    is_inclusive = bool(document.get("isInclusive", True))
    number, time, offset = (document.get(key) for key in ("seqNo", "enqueuedTime", "offset"))
    if number is not None and number != -1:
        return EventPosition.from_sequence_number(
            _number(option, number), is_inclusive=is_inclusive
        )
    if time is not None:
        return EventPosition(enqueued_time=_time(option, str(time)), is_inclusive=is_inclusive)
    if offset is None:
        raise ConfigurationError(f"{option} is {document!r}, which names no position: {_FORMS}")
    if str(offset) == _BEFORE_ALL:
        return EventPosition.earliest()
    if str(offset) == _AFTER_ALL:
        return EventPosition.latest()
    return EventPosition.from_offset(str(offset), is_inclusive=is_inclusive)


def _number(option: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigurationError(f"{option} has seqNo {value!r}: give a whole number from 0 on")
    return value


def _time(option: str, text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(f"{option} is {text!r}: {_FORMS}") from None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _json(option: str, text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"{option} is {text!r}, which is no JSON: {error}") from error


def refuse_kafka(checkpoint: Checkpoint | None) -> None:
    """Refuse a checkpoint whose numbers are Kafka's: here all numbers are Event Hubs' over AMQP.

    Raises:
        ConfigurationError: it is one.
    """
    if checkpoint is not None and numbering_in(checkpoint) is Numbering.KAFKA:
        raise ConfigurationError(
            f"the consumer group's checkpoint of partition {checkpoint.partition_id!r} stands at "
            f"{checkpoint.offset!r}: a processor wrote it that reads over Kafka, whose offsets "
            "mean nothing over AMQP. Give another consumerGroup"
        )
