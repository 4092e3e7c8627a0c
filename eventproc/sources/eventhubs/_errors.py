"""Map errors of the service and of Azure's client to errors of ``eventproc.errors``.

The conditions are AMQP's own and those that Event Hubs adds under ``com.microsoft``. The prefix
``amqp:`` or ``com.microsoft:`` is removed before the comparison, because Azure's client removes it
in some of its errors.
"""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from eventproc._base.identity import NoTokenError
from eventproc._base.network import failure_of
from eventproc.errors import (
    EventProcError,
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)

DISPLACED: Final = "link:stolen"
DETACH_FORCED: Final = "link:detach-forced"
OFFSET_REFUSED: Final = "georeplication:invalid-offset"

PERMANENT: Final = frozenset(
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
"""Permanent conditions: another attempt fails in the same way. All others are temporary:
``server-busy``, ``timeout``, ``internal-error``, ``link:detach-forced``, ..."""

_STATUS: Final = re.compile(r"[Ss]tatus code: (\d{3})")
"""Finds the service's status code, which the client puts only into its messages."""

_CLAIM: Final = re.compile(r"'(Listen|Send|Manage)' claim")
"""Finds the right that a credential lacks, in the service's text."""

_REFERENCE: Final = re.compile(
    r"(?:Reference:[^\s,]+, )?TrackingId:[^\s,]+(?:, SystemTracker:[^\s,]+)?"
    r"(?:, Timestamp:[^\s,]+(?: [\d:]+ [AP]M)?)?"
)
"""Finds what the service appends for its support."""

ROLES: Final = {
    "Listen": "Azure Event Hubs Data Receiver",
    "Send": "Azure Event Hubs Data Sender",
    "Manage": "Azure Event Hubs Data Owner",
}
"""The role of Azure that has each right of Event Hubs."""

PERMANENT_STATUSES: Final = frozenset({400, 401, 403, 404, 410})
"""Permanent status codes, in answers to a token or to a management request."""


class OffsetRefusedError(SourceRejectedError):
    """The service rejects an offset from before geo-replication was switched on."""


class RightMissingError(SourceRejectedError):
    """The service knows the credential, which lacks a right; the message names the role."""

    names_remedy = True


class CredentialError(SuspectSettingError):
    """A credential gave no token; the message says why, and the remedy."""

    names_remedy = True


class ConnectionSettingError(SuspectSettingError):
    """A certificate or a proxy refuses the connection; the message names the remedy."""

    names_remedy = True


class UnexpectedShapeError(EventProcError):
    """The installed Azure client lacks a private name that is needed. Never leaves the source."""


def error_for(
    what: str, text: str, *, condition: str | None = None, status: int | None = None
) -> SourceRejectedError | SourceUnavailableError:
    """Return the error of ``eventproc.errors`` for an answer of the service.

    Args:
        what: the operation, for the message.
        text: the error text of the service or of the network.
        condition: AMQP's error condition, with or without its prefix.
        status: the status code, if the service answered with one.
    """
    words, reference = _parted(text)
    message = f"{what}: {words}"
    bare = condition.removeprefix("amqp:").removeprefix("com.microsoft:") if condition else None
    if bare == DISPLACED:
        return ReceiverDisplacedError(message, reference=reference)
    if bare == OFFSET_REFUSED:
        return OffsetRefusedError(message, reference=reference)
    # A link that is detached because its token expired names the right, too.
    claim = None if bare == DETACH_FORCED else _CLAIM.search(text)
    if claim:
        return RightMissingError(
            f"{message}. The credential lacks the right {claim[1]}: assign the identity the role "
            f"{ROLES[claim[1]]} on the event hub or its namespace (it takes effect after some "
            "minutes), or use a key with this right",
            reference=reference,
        )
    if bare in PERMANENT or status in PERMANENT_STATUSES:
        return SourceRejectedError(message, reference=reference)
    return SourceUnavailableError(message, reference=reference)


def _parted(text: str) -> tuple[str, str]:
    """Return the words of the service on one line, and apart from them what its support asks for.

    The second is empty if the text has none. The words have no full stop, so that more can follow.
    """
    text = " ".join(text.split())
    words = " ".join(_REFERENCE.sub("", text).split())
    return words.rstrip(" ."), "; ".join(_REFERENCE.findall(text)).rstrip(".")


@contextmanager
def translated(what: str, *, is_silent: bool = False) -> Iterator[None]:
    """Translate an exception of Azure's client to ``SourceError``; suppress it if *is_silent*."""
    try:
        yield
    except EventProcError:
        raise
    except Exception as error:
        # Every exception: on unexpected bytes the client's wire code raises anything from
        # struct.error to AttributeError.
        if not is_silent:
            raise error_from(what, error) from error


def error_from(what: str, error: Exception) -> SourceError:
    """Build the error from condition and status of the exception, or of one of its causes."""
    text = str(error) or type(error).__name__
    text = as_text(getattr(error, "description", None)) or text
    condition: str | None = None
    stated = _STATUS.search(text)
    status = int(stated[1]) if stated else None
    if failure := failure_of(error):
        kind = ConnectionSettingError if failure.is_setting else SourceUnavailableError
        return kind(f"{what}: {failure.reason}")
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return SuspectSettingError(f"{what}: the host is not known: {cause.strerror}")
        if isinstance(cause, NoTokenError):
            return CredentialError(f"{what}: {cause}")
        found = getattr(cause, "condition", None) or getattr(cause, "error", None)
        if condition is None and isinstance(found, bytes | str):
            condition = found.decode() if isinstance(found, bytes) else found
    return error_for(what, text, condition=condition, status=status)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and its causes, up to the first error of ``eventproc``."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, EventProcError):
        yield cause
        cause = cause.__cause__ or cause.__context__


def as_text(value: object) -> str:
    """Return a value of the service as text. Bytes are decoded; ``None`` is an empty text."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
