"""What the end of a worker means: when to start it again, and what the supervisor's exit code is.

Decisions on values: no process, no clock.
"""

import signal
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eventproc.cli.terminal.exits import BAD_INPUT, FAILED, OK, UNREACHABLE
from eventproc.config import Backoff

STEADY: Final = timedelta(minutes=1)
"""A worker that ran for this long had started well: its next end counts as the first one."""

BACKOFF: Final = Backoff(initial=timedelta(seconds=1), maximum=timedelta(minutes=1))

REPORTED_AFTER: Final = 3
"""After this many ends in a row, each within ``STEADY`` of the start, an operator has to look."""

_SEVERITY: Final = (OK, UNREACHABLE, FAILED, BAD_INPUT)
"""From the best to the worst."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """How often in a row a worker ended soon after its start."""

    early_count: int = 0

    @property
    def is_reported(self) -> bool:
        """Whether the worker keeps failing, so that it is an error and not an incident."""
        return self.early_count >= REPORTED_AFTER

    def after_end(self, ran_s: float) -> "Restarts":
        """Return the count after an end; *ran_s* is how long the worker ran."""
        return Restarts(1 if ran_s >= STEADY.total_seconds() else self.early_count + 1)

    def wait_s(self, chance: float) -> float:
        """Return how long to wait before the next start; *chance* (0 to 1) takes up to half off."""
        return BACKOFF.wait_s(max(self.early_count, 1), chance)


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
