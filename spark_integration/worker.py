"""What every Python process of Spark needs from us, once.

Spark starts these processes and configures nothing in them. So here, and only here, the library
is the program.
"""

import gc
import logging
from functools import cache
from typing import Final

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s%(fields)s"
_OWN: Final = frozenset(logging.makeLogRecord({}).__dict__) | {
    "asctime",
    "fields",
    "level",
    "message",
}


class _WithFields(logging.Formatter):
    """The fields of an event behind its name."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in vars(record).items() if name not in _OWN}
        record.fields = "".join(f" {name}={value!r}" for name, value in fields.items())
        return super().format(record)


@cache
def settle_in() -> None:
    """Let warnings be seen, and spare the collector what never changes.

    Warnings go to standard error, which is Spark's log of the executor, unless somebody has
    configured logging. PySpark collects garbage after every task; with its imports in memory that
    takes 15 to 20 ms, and nothing once they are frozen.
    """
    if not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_WithFields(_FORMAT))
        logging.getLogger("eventproc").addHandler(handler)
    gc.collect()
    gc.freeze()
