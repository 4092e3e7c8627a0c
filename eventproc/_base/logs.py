"""The loggers of eventproc, and formatters for log lines.

Loggers have structlog's interface and use the standard library's ``logging``. Event names are in
the past tense; ``docs/log-events.md`` lists them. The message of a record is the event with its
fields; the event and each field are also attributes of the record.

A library must not configure logging, so the root logger is not changed. If the program has not set
up logging, warnings and errors go to standard error, as with ``logging.lastResort``.
"""

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final, Literal, TextIO
from unicodedata import category
from weakref import WeakSet

import structlog

from eventproc._base.settings import checked

Logger = structlog.stdlib.BoundLogger
"""What ``get_logger`` returns; ``bind`` adds fields once for many events."""

LineFormat = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]

_OURS: Final = "eventproc"

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    *("message", "asctime", "taskName", "event")
}
"""Attributes of every record, and the event; the others are the event's fields."""

_LINES: Final = "\n\t"

_OF_PROCESSOR: Final = "_of_processor"
"""The name under which a logger has the fields of its processor."""

_processor_fields: ContextVar[Mapping[str, object] | None] = ContextVar("fields", default=None)
"""The fields of the processor for which a task or a thread works: for loggers without them."""

_processors: WeakSet[object] = WeakSet()
"""The processors that have been started."""


TEXT_MAX: Final = 2_000
"""Most characters of an error in a log line, a snapshot of statistics or a report."""


def shortened(text: str) -> str:
    """Return a text whole, or its beginning and how long it was: it may quote a large body."""
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}... ({len(text)} characters)"


def error_text(error: BaseException) -> str:
    """Return the ``repr`` of an error, shortened, or its class if that fails, as a user's may."""
    try:
        return shortened(repr(error))
    except Exception:  # noqa: BLE001 - the user's code
        return f"{type(error).__qualname__}, whose repr fails"


def printable(text: str, *, keep: str = "") -> str:
    """Return text from outside so that a terminal shows it and obeys nothing in it.

    Control characters, line breaks, marks that turn the direction of writing and all others that
    cannot be seen become escapes, as in a ``repr``. Those in *keep* stay.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep or category(c) == "Zs" else _escape(c) for c in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


# From an event to a record.


class _FieldText:
    """Fields as text on one line; formatted only if a handler writes the record."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self._fields = fields

    def __str__(self) -> str:
        return " ".join(f"{name}={_on_one_line(v)}" for name, v in self._fields.items())


def _on_one_line(value: object) -> str:
    return printable(" ".join(str(value).split()))


def _to_record(
    _logger: object, _level: str, event_dict: structlog.typing.EventDict
) -> tuple[tuple[object, ...], dict[str, Any]]:
    """Return the arguments of ``logging.Logger.log``."""
    event, exc_info = event_dict.pop("event"), event_dict.pop("exc_info", None)
    common = event_dict.pop(_OF_PROCESSOR, None) or _processor_fields.get() or {}
    every = {**event_dict, **{k: v for k, v in common.items() if k not in event_dict}}
    # In the text of a program with one processor, its first line says them.
    entry = {k: v for k, v in event_dict.items() if v is not None}
    if len(_processors) > 1:
        entry = {k: v for k, v in every.items() if v is not None}
    message = (f"{event} %s", _FieldText(entry)) if entry else (event,)
    return message, {"extra": {"event": event, **every}, "exc_info": exc_info}


def get_logger(name: str, **fields: object) -> Logger:
    """Return a logger below ``eventproc`` whose events all carry ``fields``."""
    logger: Logger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[structlog.stdlib.filter_by_level, _to_record],
        wrapper_class=structlog.stdlib.BoundLogger,
        context_class=dict,
        cache_logger_on_first_use=True,
    ).bind(**fields)
    return logger


def with_fields_of_processor(log: Logger, fields: Mapping[str, object] | None = None) -> Logger:
    """Return the logger with *fields* on every line, or with those of the running task.

    They are equal on every line of a processor: text lines leave them out while the program has one
    processor. *fields* may change later.
    """
    return log.bind(**{_OF_PROCESSOR: _processor_fields.get() if fields is None else fields})


@contextmanager
def logging_for(processor: object, fields: Mapping[str, object]) -> Iterator[None]:
    """Give what is logged by the block and its tasks the fields of a processor.

    With the second *processor*, text lines have them, too.
    """
    _processors.add(processor)
    token = _processor_fields.set(fields)
    try:
        yield
    finally:
        _processor_fields.reset(token)


class ConditionLogger:
    """Logs a condition that lasts, such as an outage, when it begins and when it ends.

    While it lasts, repetitions are logged at debug level, so that they cost no lines. If it becomes
    an error after it began as a warning, that is logged once, too.
    """

    def __init__(self, log: Logger, begins: str, ends: str) -> None:
        """Log the events *begins* and *ends* to *log*."""
        self._log = log
        self._begins, self._ends = begins, ends
        self._is_error = False
        self.count = 0
        """How often it was noted since it began; 0 while it does not hold."""

    def note(self, *, is_error: bool = False, **fields: object) -> None:
        """Note that it holds; the first time at warning level, or at error level for *is_error*."""
        level = logging.DEBUG
        if is_error and not self._is_error:
            level = logging.ERROR
        elif not self.count:
            level = logging.WARNING
        self.count += 1
        self._is_error |= is_error
        self._log.log(level, self._begins, **fields)

    def update(self, *, holds: bool, **fields: Any) -> None:  # noqa: ANN401 - as for a logger
        """Note whether it holds, with the same fields at its beginning and at its end."""
        if holds:
            self.note(**fields)
        else:
            self.end(**fields)

    def end(self, **fields: object) -> None:
        """Note that it does not hold; logged if it did."""
        if self.count:
            self.count, self._is_error = 0, False
            self._log.log(logging.INFO, self._ends, **fields)


# From a record to a line.


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _STANDARD and value is not None
    }


class TextLines(logging.Formatter):
    """Formats text lines: local time, level, logger, event and fields; then a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback follows on further lines."""
        text = self.line(record)
        if record.exc_info:
            text += f"\n{printable(self.formatException(record.exc_info), keep=_LINES)}"
        # Only a line of this formatter begins with a time at the left margin.
        return text.replace("\n", "\n  ")

    def line(self, record: logging.LogRecord) -> str:
        """Return the line without a traceback."""
        at = datetime.fromtimestamp(record.created).astimezone()
        # The message of an event contains its fields; records of other libraries may have extra.
        extra = {} if hasattr(record, "event") else _fields(record)
        message = printable(record.getMessage(), keep=_LINES)
        text = f"{message} {_FieldText(extra)}".rstrip()
        time = f"{at:%Y-%m-%d %H:%M:%S}.{int(record.msecs):03}"
        return f"{time} {record.levelname:<7} {record.name}: {text}"


class JsonLines(logging.Formatter):
    """Formats JSON lines: one object for each event, with ``time``, ``event`` and its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": getattr(record, "event", None) or record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


class _PlaceLines(TextLines):
    """Formats text lines with the place where an error was raised instead of a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        frames = extract_tb(record.exc_info[2]) if record.exc_info else []
        if not frames:
            return self.line(record)
        last = frames[-1]
        place = f"{Path(last.filename).name}:{last.lineno} in {last.name}"
        return f"{self.line(record)} (raised at {place})"


# Where lines go.


class RecordObserver(logging.Handler):
    """Base of handlers that only observe records; ``_LastResort`` still writes these records."""


class _LastResort(logging.StreamHandler[TextIO]):
    """Writes warnings and errors to standard error if the program has not set up logging.

    It writes nothing if the record reaches any other handler, including a ``NullHandler``, or if
    ``logging.lastResort`` is ``None``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setLevel(logging.WARNING)
        self.setFormatter(_PlaceLines())

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, if no other handler gets the record."""
        if logging.lastResort is not None and not self._has_other_handler(record.name):
            self.stream = sys.stderr  # Read at each call: a program may have replaced it.
            super().emit(record)

    def _has_other_handler(self, name: str) -> bool:
        logger: logging.Logger | None = logging.getLogger(name)
        while logger is not None:
            if any(not isinstance(each, RecordObserver | _LastResort) for each in logger.handlers):
                return True
            logger = logger.parent if logger.propagate else None
        return False


class _Configured(logging.StreamHandler[TextIO]):
    """The handler that ``configure`` installs, and replaces when it is called again."""


logging.getLogger(_OURS).addHandler(_LastResort())


@checked
def configure(line_format: LineFormat = "text", *, level: Level = "info") -> None:
    """Write the log events of eventproc to standard error, one line each.

    For programs that do not set up Python's ``logging`` themselves. Loggers of other libraries are
    not changed; eventproc's events are written nowhere else from then on. Each call replaces the
    one before.

    Args:
        line_format: ``text`` for people, with tracebacks below the lines; ``json`` for programs.
        level: The lowest level that is written.

    Raises:
        ConfigurationError: an argument has another value.
    """
    ours = logging.getLogger(_OURS)
    for earlier in [each for each in ours.handlers if isinstance(each, _Configured)]:
        ours.removeHandler(earlier)
    output = _Configured(sys.stderr)
    output.setFormatter(TextLines() if line_format == "text" else JsonLines())
    ours.addHandler(output)
    ours.setLevel(level.upper())
    ours.propagate = False
