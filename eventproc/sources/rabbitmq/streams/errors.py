"""Map the response codes of RabbitMQ's stream protocol to errors of ``eventproc.errors``."""

from collections.abc import Mapping
from typing import Final

from eventproc.errors import SourceError, SourceRejectedError, SourceUnavailableError

STREAM_MISSING: Final = 2

TEXTS: Final[Mapping[int, str]] = {
    2: "the stream does not exist",
    6: "the stream is not available at the moment",
    7: "the broker does not offer the login mechanism PLAIN",
    8: "the broker refuses user name or password",
    9: "the login failed",
    11: "the broker allows the user `guest` only on its own machine; use another user",
    12: "the virtual host does not exist, or the user may not use it",
    13: "the login failed, or the user `guest` came from another machine",
    16: "the user may not read the stream; `rabbitmqctl set_permissions` gives the right",
    17: "the broker refuses the request: precondition failed",
}
"""The cause that each of these response codes means, for error messages."""

PERMANENT: Final = frozenset({2, 7, 8, 9, 11, 12, 13, 16, 17})
"""Codes of permanent errors: another attempt fails in the same way. All others are temporary."""


def error_for(what: str, code: object) -> SourceError:
    """Return the error for a response code of the broker."""
    known = code if isinstance(code, int) else None
    text = TEXTS.get(known, "the broker refuses the request") if known else "the broker refuses"
    message = f"{what}: {text} (code {code})" if known else f"{what}: {text}"
    return (SourceRejectedError if known in PERMANENT else SourceUnavailableError)(message)
