"""The command's logging: one line on standard error for each log event.

``eventproc.logs.configure`` sets up the logger ``eventproc`` only. The command sets up the root
logger, so that log events of the user's handler and of other libraries are shown as well.
"""

import logging
import sys
from enum import StrEnum
from typing import TextIO, TypeAlias

from eventproc._base.logs import JsonLines, TextLines


class LogFormat(StrEnum):
    """The format of a log line."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The lowest level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogOutput: TypeAlias = "logging.StreamHandler[TextIO]"
"""What writes the lines; its lock is held while a line is written."""


def chosen_format(line_format: LogFormat) -> LogFormat:
    """Return what ``AUTO`` stands for: text on a terminal, JSON otherwise."""
    if line_format is not LogFormat.AUTO:
        return line_format
    return LogFormat.TEXT if sys.stderr.isatty() else LogFormat.JSON


def log_to_stderr(line_format: LogFormat, level: LogLevel) -> LogOutput:
    """Send log events to standard error."""
    is_text = chosen_format(line_format) is LogFormat.TEXT
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(TextLines() if is_text else JsonLines())
    number = logging.getLevelNamesMapping()[level.upper()]
    root = logging.getLogger()
    root.addHandler(output)
    root.setLevel(max(number, logging.WARNING))
    logging.getLogger("eventproc").setLevel(number)
    # The library logs the errors of Azure's clients itself, with their consequences.
    logging.getLogger("azure").setLevel(logging.CRITICAL)
    return output
