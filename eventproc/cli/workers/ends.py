"""What the end of a worker means: when it is started again, and what the supervisor's exit code is.

Decisions on values: no process, no clock.
"""

import signal
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from eventproc.cli.terminal.exits import BAD_INPUT, FAILED, OK, UNREACHABLE
from eventproc.config import Backoff

BACKOFF: Final = Backoff(initial=timedelta(seconds=1), maximum=timedelta(minutes=1))
"""Waits before the next start."""

STEADY_S: Final = BACKOFF.maximum.total_seconds()
"""A worker that ran for this long had started well: its next end counts as the first one."""

REPORTED_AFTER: Final = 3
"""After this many ends in a row, each within ``STEADY_S`` of the start, an operator has to look."""

_SEVERITY: Final = (OK, UNREACHABLE, FAILED, BAD_INPUT)
"""From the best to the worst."""


def meaning_of(code: int, *, was_asked: bool) -> int:
    """Return what a process's end amounts to, as an exit code of the command.

    A negative *code* is the signal that ended the process. A worker that was asked to stop while
    Python was still starting is ended by the request itself, and had nothing under way.
    """
    if was_asked and code == -signal.SIGTERM:
        return OK
    return code if code in _SEVERITY else FAILED


def worst(codes: Iterable[int]) -> int:
    """Return the worst exit code: wrong input, then a failure, then no answer, then success."""
    return max(codes, key=_SEVERITY.index, default=OK)
