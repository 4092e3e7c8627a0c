"""Parse the target of ``checkpoints reset --to``, and translate it to a position in a partition.

A target is the next event to deliver, as in ``eventproc run --start``. A checkpoint names the event
before that one. All functions are pure.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from eventproc._core.delivery.checkpoints import (
    BEFORE_FIRST_OFFSET,
    is_beyond_end,
    precedes_hub,
)
from eventproc._core.option_values import parse_position
from eventproc.errors import ConfigurationError
from eventproc.models import Checkpoint, EventPosition, PartitionProperties

_STEPS: Final = re.compile(r"[+-][0-9]{1,19}")
"""As many digits as a sequence number may have."""


@dataclass(frozen=True, slots=True)
class RelativeTarget:
    """A number of events forward from the checkpoint, or back if it is negative."""

    count: int


Target = EventPosition | RelativeTarget


def parse_target(option: str, text: str) -> Target:
    """Parse a value of ``--start``, or ``-100`` and ``+100``: this many events back or forward.

    Raises:
        ConfigurationError: The text has another form; the message names the option.
    """
    if _STEPS.fullmatch(text.strip()):
        return RelativeTarget(int(text))
    try:
        return parse_position(option, text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; or -100, to get the last 100 events again") from None


def refuse_future(target: Target, now: datetime) -> None:
    """Refuse a time that has not come yet: a wrong year would drop states and move nothing.

    Raises:
        ConfigurationError: The target is later than *now*.
    """
    time = target.enqueued_time if isinstance(target, EventPosition) else None
    if time is not None and time > now:
        raise ConfigurationError(
            f"{time:%Y-%m-%dT%H:%M:%SZ} is in the future: give an earlier time, or latest for the "
            "next event that is published"
        )


def require_of_hub(
    where: str, number: int | None, since: datetime, created: datetime | None
) -> None:
    """Refuse a position that was known before the hub was created.

    Raises:
        ConfigurationError: Its number is that of another event now.
    """
    if precedes_hub(number, since, created):
        raise ConfigurationError(
            f"{where} is of {since:%Y-%m-%d %H:%M:%S} UTC, before this event hub was created: its "
            "position is of a former hub, and means nothing in this one. To import other "
            "partitions, give --partition"
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """The lowest and the highest position that a checkpoint of a partition can have."""

    before_first: int
    """One below the sequence number of the first event that the hub still has."""

    last: int
    """The sequence number of the last event."""

    @classmethod
    def of(cls, end: PartitionProperties) -> "Bounds":
        """Return the bounds of a partition."""
        last = end.last_enqueued_sequence_number
        return cls(last if end.is_empty else end.beginning_sequence_number - 1, last)


def require_event(number: int, end: PartitionProperties) -> None:
    """Refuse the number of an event that the partition does not have yet.

    Raises:
        ConfigurationError: It is after the last event.
    """
    if is_beyond_end(number, end):
        last = end.last_enqueued_sequence_number
        raise ConfigurationError(
            f"partition {end.partition_id} has no event {number} yet, "
            f"{'nor any other' if last < 0 else f'its last one is {last}'}: a processor would not "
            "serve the partition from there. Give the number and the offset of an event that it has"
        )


def last_handled(
    target: Target, end: PartitionProperties, checkpoint: Checkpoint | None
) -> int | None:
    """Return the sequence number that a checkpoint needs for a target.

    ``None`` for a time within the partition: the event has to be looked up in the hub. Events that
    the hub has dropped cannot be delivered again, so the result is never below its first event.

    Raises:
        ConfigurationError: The event does not exist yet, or there is no checkpoint to count from.
    """
    bounds = Bounds.of(end)
    if isinstance(target, RelativeTarget):
        position = None if checkpoint is None else checkpoint.sequence_number
        if position is None:
            raise ConfigurationError(
                f"partition {end.partition_id} has no checkpoint with a sequence number to count "
                "from: give another --to"
            )
        return min(max(position + target.count, bounds.before_first), bounds.last)
    if target.is_latest:
        return bounds.last
    if target.sequence_number is not None:
        if target.sequence_number > bounds.last + 1:
            raise ConfigurationError(
                f"partition {end.partition_id} has no event {target.sequence_number} yet, its last "
                f"one is {bounds.last}: give a lower number, or latest"
            )
        return max(target.sequence_number - 1, bounds.before_first)
    if target.enqueued_time is not None:
        newest = end.last_enqueued_time
        is_over = end.is_empty or newest is None or newest < target.enqueued_time
        return bounds.last if is_over else None
    return bounds.before_first


def known_offset(
    number: int, end: PartitionProperties, checkpoint: Checkpoint | None
) -> str | None:
    """Return the offset of an event if it is known without reading the event; else ``None``."""
    bounds = Bounds.of(end)
    if checkpoint is not None and checkpoint.sequence_number == number and checkpoint.offset:
        return checkpoint.offset
    if number == bounds.last and number >= 0:
        return end.last_enqueued_offset
    return BEFORE_FIRST_OFFSET if number <= bounds.before_first else None
