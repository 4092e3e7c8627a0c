"""Parses values that are given as text: durations and positions, on the command line and in Spark.

Each function gets the name of the option, for its message.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from eventproc.errors import ConfigurationError
from eventproc.models import SEQUENCE_NUMBER_MAX, EventPosition

_DURATION: Final = re.compile(r"(?:PT)?(\d+(?:\.\d+)?)\s*(ms|s|m|h)?", re.IGNORECASE)
_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
}

DURATION_MAX: Final = timedelta(days=36_500)
"""A hundred years: this long before or after now there still is a date."""

POSITION_FORMS: Final = (
    "earliest, latest, a sequence number such as 4711, or a time such as 2026-01-31T08:00:00Z"
)


def parse_duration(option: str, text: str) -> timedelta:
    """Parse ``500ms``, ``10s``, ``2m``, ``1h``, ``PT10S``; a bare number is seconds.

    Raises:
        ConfigurationError: The text has another form; the message names the option.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ConfigurationError(
            "give a duration such as 500ms, 10s, 2m or 1h", setting=option, value=repr(text)
        )
    count, unit = float(match[1]), _UNITS[(match[2] or "s").lower()]
    if count > DURATION_MAX / unit:
        raise ConfigurationError(
            f"give {DURATION_MAX / timedelta(hours=1):.0f}h, a hundred years, or less",
            setting=option,
            value=repr(text[:40]),
        )
    return count * unit


def parse_position(option: str, text: str, forms: str = POSITION_FORMS) -> EventPosition:
    """Parse ``earliest``, ``latest``, a time (ISO 8601, by default in UTC) or a sequence number.

    The result is the position of the first event to read: the event with this sequence number, or
    the first event that the hub received at this time or later.

    Raises:
        ConfigurationError: The text has another form; the message names the option and *forms*.
    """
    word = text.strip().lower()
    if word == "earliest":
        return EventPosition.earliest()
    if word == "latest":
        return EventPosition.latest()
    if word.isdecimal() and word.isascii():
        return EventPosition.from_sequence_number(_sequence_number(option, word), is_inclusive=True)
    return EventPosition.from_enqueued_time(parse_time(option, text, forms))


def parse_time(option: str, text: str, forms: str) -> datetime:
    """Parse a time in ISO 8601, by default in UTC.

    Raises:
        ConfigurationError: The text has another form; the message names the option and *forms*.
    """
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigurationError(f"give {forms}", setting=option, value=repr(text)) from None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _sequence_number(option: str, digits: str) -> int:
    # Check the length first: int() rejects numbers with thousands of digits.
    if len(digits) > len(str(SEQUENCE_NUMBER_MAX)) or int(digits) > SEQUENCE_NUMBER_MAX:
        raise ConfigurationError(
            f"sequence numbers end at {SEQUENCE_NUMBER_MAX}", setting=option, value=digits[:40]
        )
    return int(digits)
