"""Where log events go when the library runs as a command: standard error, one line each.

The library logs facts with fields to Python's ``logging``; this is what a program of one's own
would set up differently.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; the rest are the fields of the event."""

_ALWAYS_SAID: Final = ("owner_id", "consumer_group")
"""The same on every line of a process: for machines, and noise to people."""


class LogFormat(StrEnum):
    """How a log line looks."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The least important event that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _STANDARD and value is not None
    }


class TextLines(logging.Formatter):
    """For people: time, level, the event and its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; an exception follows on lines of its own."""
        at = datetime.fromtimestamp(record.created).astimezone()
        told = {k: v for k, v in _fields(record).items() if k not in _ALWAYS_SAID}
        fields = " ".join(f"{name}={value}" for name, value in told.items() if name != "exception")
        line = f"{at:%H:%M:%S}.{int(record.msecs):03} {record.levelname:<7} {record.getMessage()}"
        exception = told.get("exception") or (
            self.formatException(record.exc_info) if record.exc_info else ""
        )
        return f"{line} {fields}".rstrip() + (f"\n{exception}" if exception else "")


class JsonLines(logging.Formatter):
    """For programs: one JSON object for each event, its fields beside ``time`` and ``event``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info and "exception" not in told:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


def log_to_stderr(line_format: LogFormat, level: LogLevel) -> None:
    """Send log events to standard error: text on a terminal, JSON otherwise, unless told which."""
    is_text = line_format is LogFormat.TEXT or (
        line_format is LogFormat.AUTO and sys.stderr.isatty()
    )
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(TextLines() if is_text else JsonLines())
    number = logging.getLevelNamesMapping()[level.upper()]
    root = logging.getLogger()
    root.addHandler(output)
    root.setLevel(max(number, logging.WARNING))
    logging.getLogger("eventproc").setLevel(number)
    # What Azure's clients stumble over arrives as an event of ours, which says what follows.
    logging.getLogger("azure").setLevel(logging.CRITICAL)
