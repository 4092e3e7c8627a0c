"""What the service's error conditions mean to a caller: displaced, refused for good, or later.

The conditions are AMQP's own and those that Event Hubs adds under ``com.microsoft``. The part
before the first colon is dropped, because Azure's client drops it on some of its ways.
"""

from typing import Final

from eventproc.errors import (
    ReceiverDisplacedError,
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

STATUS_FOR_GOOD: Final = frozenset({400, 401, 403, 404, 410})
"""The same in numbers, as the service answers to a token or a question."""


class SuspectSettingError(SourceUnavailableError):
    """It may pass, but at a start a wrong setting is likelier: an unknown host, no token."""


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
