"""What the service and the client say, and what it means: displaced, refused for good, or later.

The conditions are AMQP's own and those that Event Hubs adds under ``com.microsoft``. The part
before the first colon is dropped, because Azure's client drops it on some of its ways.
"""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from azure.core.exceptions import ClientAuthenticationError

from eventproc.errors import (
    EventProcError,
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
)

DISPLACED: Final = "link:stolen"

FOR_GOOD: Final = frozenset(
    {
        "argument-error",
        "argument-out-of-range",
        "auth-failed",
        "decode-error",
        "entity-disabled",
        "invalid-field",
        "not-allowed",
        "not-found",
        "not-implemented",
        "precondition-failed",
        "resource-deleted",
        "unauthorized-access",
    }
)
"""Asking again gives the same answer. Whatever is not here is worth another attempt:
``server-busy``, ``timeout``, ``internal-error``, ``link:detach-forced``, ..."""

_STATUS: Final = re.compile(r"[Ss]tatus code: (\d{3})")
"""The client puts the service's status code into its messages, and nowhere else."""

STATUS_FOR_GOOD: Final = frozenset({400, 401, 403, 404, 410})
"""The same in numbers, as the service answers to a token or a question."""


class SuspectSettingError(SourceUnavailableError):
    """It may pass, but at a start a wrong setting is likelier: an unknown host, no token."""


class UnexpectedShapeError(EventProcError):
    """Azure's client is not what we know from within. Never leaves the source."""


def error_for(
    what: str, text: str, *, condition: str | None = None, status: int | None = None
) -> SourceRejectedError | SourceUnavailableError:
    """Return the error that a caller of the port shall get.

    Args:
        what: what was being done, for the message.
        text: what the service or the network said.
        condition: AMQP's error condition, with or without its prefix.
        status: the status code, where the service answered with one.
    """
    message = f"{what}: {' '.join(text.split())}"
    bare = condition.removeprefix("amqp:").removeprefix("com.microsoft:") if condition else None
    if bare == DISPLACED:
        return ReceiverDisplacedError(message)
    if bare in FOR_GOOD or status in STATUS_FOR_GOOD:
        return SourceRejectedError(message)
    return SourceUnavailableError(message)


@contextmanager
def translated(what: str, *, is_silent: bool = False) -> Iterator[None]:
    """Turn whatever Azure's client raises into an error of ours, or into nothing."""
    try:
        yield
    except EventProcError:
        raise
    except Exception as error:
        # Everything: the private wire code raises what it stumbles over, from struct.error to
        # AttributeError, when the other side is not what it expects.
        if not is_silent:
            raise error_from(what, error) from error


def error_from(what: str, error: Exception) -> SourceError:
    """Find condition and status: on the error itself, or on one that it was made from."""
    text = str(error) or type(error).__name__
    text = as_text(getattr(error, "description", None)) or text
    condition: str | None = None
    stated = _STATUS.search(text)
    status = int(stated[1]) if stated else None
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return SuspectSettingError(f"{what}: the host is not known: {cause.strerror}")
        if isinstance(cause, ClientAuthenticationError):
            return SuspectSettingError(f"{what}: the credential gave no token: {cause}")
        found = getattr(cause, "condition", None) or getattr(cause, "error", None)
        if condition is None and isinstance(found, bytes | str):
            condition = found.decode() if isinstance(found, bytes) else found
    return error_for(what, text, condition=condition, status=status)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, up to an earlier failure that was ours to tell."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, EventProcError):
        yield cause
        cause = cause.__cause__ or cause.__context__


def as_text(value: object) -> str:
    """What the service said, as text: the client leaves it in bytes. Nothing is empty."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
