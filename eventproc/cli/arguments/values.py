"""Parse and format the values of options: durations, positions and hubs."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from eventproc.errors import ConfigurationError
from eventproc.models import SEQUENCE_NUMBER_MAX, EventPosition

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
}


def parse_duration(option: str, text: str) -> timedelta:
    """Parse ``500ms``, ``10s``, ``2m``, ``1h``; a bare number is seconds.

    Raises:
        ConfigurationError: The text has another form; the message names the option.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ConfigurationError(
            f"{option} is {text!r}: give a duration such as 500ms, 10s, 2m or 1h"
        )
    return float(match[1]) * _UNITS[match[2] or "s"]


def parse_position(option: str, text: str) -> EventPosition:
    """Parse ``earliest``, ``latest``, a time (ISO 8601, by default in UTC) or a sequence number.

    The result is the position of the first event to read: the event with this sequence number, or
    the first event that the hub received at this time or later.

    Raises:
        ConfigurationError: The text has another form; the message names the option.
    """
    word = text.strip().lower()
    if word == "earliest":
        return EventPosition.earliest()
    if word == "latest":
        return EventPosition.latest()
    if word.isdecimal() and word.isascii():
        return EventPosition.from_sequence_number(_sequence_number(option, word), is_inclusive=True)
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigurationError(
            f"{option} is {text!r}: give earliest, latest, a sequence number such as 4711, or a "
            "time such as 2026-01-31T08:00:00Z"
        ) from None
    return EventPosition.from_enqueued_time(
        instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    )


def _sequence_number(option: str, digits: str) -> int:
    # Check the length first: int() rejects numbers with thousands of digits.
    if len(digits) > len(str(SEQUENCE_NUMBER_MAX)) or int(digits) > SEQUENCE_NUMBER_MAX:
        raise ConfigurationError(
            f"{option} is {digits[:40]}: sequence numbers end at {SEQUENCE_NUMBER_MAX}"
        )
    return int(digits)


def parse_hub(option: str, text: str) -> tuple[str, int]:
    """Parse ``NAME:PARTITIONS``.

    Raises:
        ConfigurationError: The text has another form; the message names the option.
    """
    name, _, count = text.partition(":")
    if not name or not count.isdecimal():
        raise ConfigurationError(
            f"{option} is {text!r}: give NAME:PARTITIONS, for example orders:8"
        )
    return name, int(count)


def format_duration(span: timedelta) -> str:
    """Format a duration with one unit: ``0.4 s``, ``12 s``, ``3 min``, ``2 h``, ``5 days``."""
    seconds = span.total_seconds()
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            amount = seconds / unit
            return f"{amount:.1f} {name}" if amount < 10 and unit == 1 else f"{amount:.0f} {name}"  # noqa: PLR2004
    return f"{seconds / 86_400:.0f} days"
