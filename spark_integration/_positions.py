"""Parses the positions at which reading starts and ends. Pure.

The JSON form is that of the Scala connector for Event Hubs:
``{"offset": "-1", "seqNo": -1, "enqueuedTime": null, "isInclusive": true}``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from eventproc._base.bounded_json import read_json
from eventproc._core import option_values
from eventproc._core.delivery.checkpoints import is_of_former_hub, is_older_than_hub
from eventproc._core.delivery.offset_format import offset_format_in
from eventproc._core.option_values import parse_time
from eventproc.errors import ConfigurationError, HubRecreatedError
from eventproc.models import Checkpoint, EventPosition, OffsetFormat

CHECKPOINTS: Final = "checkpoints"
_FORMS: Final = (
    "earliest, latest, a time such as 2026-01-31T08:00:00Z, a sequence number such as 4711, "
    'or JSON such as {"seqNo": 4711} or {"enqueuedTime": "2026-01-31T08:00:00Z"}'
)
_BEFORE_ALL: Final = "-1"
_AFTER_ALL: Final = "@latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """A position for each partition of a hub."""

    otherwise: EventPosition
    """The position of every partition that is not in ``by_partition``."""

    by_partition: Mapping[str, EventPosition] = field(default_factory=dict)
    is_by_checkpoints: bool = False
    """Whether to start after the consumer group's checkpoints, or at ``otherwise`` without one."""

    def of(self, partition_id: str) -> EventPosition:
        """The position of one partition."""
        return self.by_partition.get(partition_id, self.otherwise)


def parse_positions(
    name: str, one: str | None, several: str | None, *, otherwise: EventPosition
) -> Positions:
    """Parse ``startingPosition`` and ``startingPositions``, or the same pair of ending options.

    Args:
        name: ``startingPosition`` or ``endingPosition``, for messages.
        one: the value of the option for all partitions.
        several: the value of the option by partition: JSON, or ``checkpoints``.
        otherwise: the default. With ``checkpoints`` the default is the oldest event instead, so
            that no event is missed.

    Raises:
        ConfigurationError: a value is malformed.
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
    """Parse one position.

    Raises:
        ConfigurationError: it is malformed; the message names the option.
    """
    text = text.strip()
    if text.startswith("{"):
        return _from_json(option, _json(option, text))
    return option_values.parse_position(option, text, _FORMS)


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
    """Return the partition that a key names: a plain id, or the Scala connector's JSON."""
    if not key.startswith("{"):
        return key
    named = _json(option, key)
    if not isinstance(named, dict) or "partitionId" not in named:
        raise ConfigurationError(f"{option} has the key {key!r}, which lacks a partitionId")
    return str(named["partitionId"])


def _from_json(option: str, document: object) -> EventPosition:
    """Parse a position in the Scala connector's form, in which -1 and null mean: not given."""
    if not isinstance(document, dict):
        raise ConfigurationError(f"{option} is {document!r}: give {_FORMS}")
    unknown = set(document) - {"offset", "seqNo", "enqueuedTime", "isInclusive"}
    if unknown:
        raise ConfigurationError(
            f"{option} has the unknown field {', '.join(sorted(map(repr, unknown)))}: give offset, "
            "seqNo, enqueuedTime or isInclusive"
        )
    is_inclusive = bool(document.get("isInclusive", True))
    number, time, offset = (document.get(key) for key in ("seqNo", "enqueuedTime", "offset"))
    if number is not None and number != -1:
        return EventPosition.from_sequence_number(
            _number(option, number), is_inclusive=is_inclusive
        )
    if time is not None:
        return EventPosition(
            enqueued_time=parse_time(option, str(time), _FORMS), is_inclusive=is_inclusive
        )
    if offset is None:
        raise ConfigurationError(f"{option} is {document!r}, which lacks a position: give {_FORMS}")
    if str(offset) == _BEFORE_ALL:
        return EventPosition.earliest()
    if str(offset) == _AFTER_ALL:
        return EventPosition.latest()
    return EventPosition.from_offset(str(offset), is_inclusive=is_inclusive)


def _number(option: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigurationError(f"{option} has seqNo {value!r}: give a whole number of 0 or more")
    return value


def _json(option: str, text: str) -> object:
    try:
        return read_json(text)
    except ValueError as error:
        raise ConfigurationError(
            f"{option} is {text!r}, which is not valid JSON: {error}"
        ) from error


def refuse_other_protocol(checkpoint: Checkpoint | None, wanted: OffsetFormat) -> None:
    """Check that a checkpoint has the offset format of the events that Spark reads.

    Raises:
        ConfigurationError: it has another.
    """
    found = None if checkpoint is None else offset_format_in(checkpoint)
    if checkpoint is not None and found not in {None, wanted}:
        raise ConfigurationError(
            f"the consumer group's checkpoint of partition {checkpoint.partition_id!r} is at "
            f"{checkpoint.offset!r}: a processor with another source wrote it, and its offsets "
            f"cannot be used for events over {wanted.value}. Give another consumerGroup"
        )


def refuse_former_hub(checkpoint: Checkpoint, hub_created_at: datetime | None) -> None:
    """Check that a checkpoint is one of the present hub.

    Raises:
        HubRecreatedError: it is of a hub that was deleted and created again.
    """
    if is_of_former_hub(checkpoint, hub_created_at):
        raise HubRecreatedError(
            checkpoint.partition_id,
            checkpoint.sequence_number,
            is_older_than_hub=is_older_than_hub(checkpoint, hub_created_at),
        )
