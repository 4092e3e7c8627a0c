"""How the command ends: the exit codes, and the one line that says why."""

import sys
from typing import Final

from eventproc.errors import (
    ConfigurationError,
    EventProcError,
    SourceUnavailableError,
    StoreUnavailableError,
)

OK: Final = 0
"""Done; for ``run`` and ``emulator``: stopped in good order by SIGINT or SIGTERM."""

FAILED: Final = 1
"""It could not go on; for ``demo``: something was lost, or the result differs."""

BAD_INPUT: Final = 2
"""Something given cannot work; the message names it and the remedy. Trying again is no use."""

UNREACHABLE: Final = 3
"""The store or the hub did not answer. Trying again may help."""

INTERRUPTED: Final = 130
"""Ended by Ctrl+C before it was done: 128 + SIGINT, as shells have it."""


def exit_code_of(error: EventProcError) -> int:
    """Return the code that tells a supervisor whether to try again."""
    if isinstance(error, ConfigurationError):
        return BAD_INPUT
    if isinstance(error, StoreUnavailableError | SourceUnavailableError):
        return UNREACHABLE
    return FAILED


def complain(message: str) -> None:
    """Say what is wrong, in one line on standard error."""
    print(f"eventproc: {' '.join(message.split())}", file=sys.stderr)
