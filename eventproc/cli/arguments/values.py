"""Parse hubs, and format durations."""

from datetime import timedelta

from eventproc.errors import ConfigurationError


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
