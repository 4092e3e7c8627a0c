"""The command's logging: one line on standard error for each log event.

``eventproc.logs.configure`` sets up the logger ``eventproc`` only. The command sets up the root
logger, so that log events of the user's handler and of other libraries are shown as well.
"""

import logging
import sys
from enum import StrEnum

from eventproc.logs import JsonLines, TextLines


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


def log_to_stderr(line_format: LogFormat, level: LogLevel) -> None:
    """Send log events to standard error; ``AUTO`` is text on a terminal and JSON otherwise."""
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
    # The library logs the errors of Azure's clients itself, with their consequences.
    logging.getLogger("azure").setLevel(logging.CRITICAL)
