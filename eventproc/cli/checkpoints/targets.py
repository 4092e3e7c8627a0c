"""Where a partition shall begin: what people write after ``--to``, and what it means in a hub.

A target names the first event to come, as ``eventproc run --start`` does; a checkpoint names the
last one before it. All functions are pure.
"""

import re
from dataclasses import dataclass
from typing import Final

from eventproc.cli.values import parse_position
from eventproc.core.progress import BEFORE_FIRST_OFFSET
from eventproc.errors import ConfigurationError
from eventproc.models import Checkpoint, EventPosition, PartitionProperties

_STEPS: Final = re.compile(r"[+-]\d+")


@dataclass(frozen=True, slots=True)
class Steps:
    """So many events on from the checkpoint, or back below zero."""

    count: int


Target = EventPosition | Steps


def parse_target(option: str, text: str) -> Target:
    """Read what ``--start`` takes, or ``-100`` and ``+100``: so many events back or on.

    Raises:
        ConfigurationError: It is none of these; the message names the option.
    """
    if _STEPS.fullmatch(text.strip()):
        return Steps(int(text))
    try:
        return parse_position(option, text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; or -100, to have the last 100 events again") from None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The last events before the first that the hub still has, and of all."""

    before_first: int
    last: int

    @classmethod
    def of(cls, end: PartitionProperties) -> "Bounds":
        """Of what a hub says of a partition."""
        last = end.last_enqueued_sequence_number
        return cls(last if end.is_empty else end.beginning_sequence_number - 1, last)


def last_handled(
    target: Target, end: PartitionProperties, checkpoint: Checkpoint | None
) -> int | None:
    """Return the sequence number that a checkpoint needs for a target.

    ``None`` for a time within the partition: only the hub knows which event is the first after it.
    What the hub dropped already cannot come again, so nothing is below its first event.

    Raises:
        ConfigurationError: There is no such event yet, or no checkpoint to count from.
    """
    bounds = Bounds.of(end)
    if isinstance(target, Steps):
        position = None if checkpoint is None else checkpoint.sequence_number
        if position is None:
            raise ConfigurationError(
                f"partition {end.partition_id} has no checkpoint to count from: give another --to"
            )
        return min(max(position + target.count, bounds.before_first), bounds.last)
    if target.is_latest:
        return bounds.last
    if target.sequence_number is not None:
        if target.sequence_number > bounds.last + 1:
            raise ConfigurationError(
                f"partition {end.partition_id} has no event {target.sequence_number} yet, its last "
                f"one is {bounds.last}: give less, or latest"
            )
        return max(target.sequence_number - 1, bounds.before_first)
    if target.enqueued_time is not None:
        newest = end.last_enqueued_time
        is_over = end.is_empty or newest is None or newest <= target.enqueued_time
        return bounds.last if is_over else None
    return bounds.before_first


def known_offset(
    number: int, end: PartitionProperties, checkpoint: Checkpoint | None
) -> str | None:
    """Return the offset of an event where it is known without reading; else ``None``."""
    bounds = Bounds.of(end)
    if checkpoint is not None and checkpoint.sequence_number == number and checkpoint.offset:
        return checkpoint.offset
    if number == bounds.last and number >= 0:
        return end.last_enqueued_offset
    return BEFORE_FIRST_OFFSET if number <= bounds.before_first else None
