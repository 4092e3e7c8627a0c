"""The exit codes of the command, and the line on standard error that says why it failed."""

import re
import sys
from typing import Final

from eventproc.errors import (
    ConfigurationError,
    DeadLetterError,
    EventProcError,
    SourceRejectedError,
    SourceUnavailableError,
    StoreError,
    StoreUnavailableError,
    SuspectSettingError,
)

# The word PASSWORD in a URL is no secret: messages show so what to give.
_SECRET: Final = re.compile(
    r"((?:accountkey|sharedaccesskey|sharedaccesssignature|password|sig)=)[^;&\s'\"]+"
    r"|(://[^:/@\s]*:)(?!(?-i:PASSWORD)@)[^@/\s]+(?=@)",
    re.IGNORECASE,
)

OK: Final = 0
"""Success; for ``run`` and ``emulator``: stopped gracefully by SIGINT or SIGTERM."""

FAILED: Final = 1
"""The command could not continue; for ``demo``: an event was lost, or the result differs."""

BAD_INPUT: Final = 2
"""An argument or setting is wrong; the message names it and the remedy. Do not retry."""

UNREACHABLE: Final = 3
"""The store, the hub or the place of dead letters did not answer. A retry may help."""

INTERRUPTED: Final = 130
"""Interrupted by Ctrl+C before the command was done: 128 + SIGINT, as in shells."""


ERROR_PREFIX: Final = "eventproc: "
"""Begins the line on standard error that says why the command ended."""


def exit_code_of(error: EventProcError) -> int:
    """Return the exit code, by which Kubernetes or systemd decides whether to start it again."""
    is_refused = isinstance(error, StoreError) and error.is_final
    is_wrong = isinstance(error, ConfigurationError | SourceRejectedError | SuspectSettingError)
    if is_refused or is_wrong:
        return BAD_INPUT
    if isinstance(error, StoreUnavailableError | SourceUnavailableError | DeadLetterError):
        return UNREACHABLE
    return FAILED


def explained(error: EventProcError) -> str:
    """Return the message of an error, with a remedy if it does not name one."""
    if isinstance(error, SourceRejectedError | SuspectSettingError):
        return error.with_remedy(
            ". Check the connection string or the namespace, the event hub's name (--eventhub), "
            "the consumer group's name (--consumer-group), and that the credential may read (at "
            "Event Hubs: has the right Listen, or the role Azure Event Hubs Data Receiver)"
        )
    if isinstance(error, SourceUnavailableError):
        return error.with_remedy(
            ". Check the host and the port of the hub, and that this machine can reach them, or "
            "try again later. Verbs with the option --without-hub then ask the store alone"
        )
    return str(error)


def print_error(message: str) -> None:
    """Print an error as one line on standard error, without secrets.

    A message may quote a value that is a connection string by mistake.
    """
    # Imported before the signal handlers are installed, this would keep early signals waiting.
    from eventproc._base.logs import printable  # noqa: PLC0415

    shown = _SECRET.sub(r"\1\2...", printable(" ".join(message.split())))
    print(f"{ERROR_PREFIX}{shown}", file=sys.stderr)
