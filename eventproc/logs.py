"""Where log events come from: structlog's interface on the standard library's loggers.

A library must not configure logging. Nothing is printed until the host program configures the
standard ``logging`` module; then every field arrives as an attribute of the record.
Each event is a past-tense fact; the catalogue is ``docs/log-events.md``.
"""

import logging

import structlog

logging.getLogger("eventproc").addHandler(logging.NullHandler())

Logger = structlog.stdlib.BoundLogger
"""What ``get_logger`` returns; ``bind`` adds fields once for many events."""


def shown(error: BaseException) -> str:
    """What an error says of itself; also one whose own ``repr`` fails, as users' may."""
    try:
        return repr(error)
    except Exception:  # noqa: BLE001 - the user's code
        return f"{type(error).__qualname__}, whose repr fails"


def get_logger(name: str, **fields: object) -> Logger:
    """Return a logger below ``eventproc`` whose events all carry ``fields``."""
    logger: Logger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_log_level,
            structlog.processors.format_exc_info,
            structlog.stdlib.render_to_log_kwargs,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        context_class=dict,
        cache_logger_on_first_use=True,
    ).bind(**fields)
    return logger
