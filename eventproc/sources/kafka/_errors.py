"""Map error names of the Kafka client to errors of ``eventproc.errors``.

Names that begin with an underscore are librdkafka's own, the others the broker's.
"""

from dataclasses import dataclass
from typing import Final

from eventproc.errors import (
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)

PERMANENT: Final = frozenset(
    {
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "ILLEGAL_SASL_STATE",
        "INVALID_GROUP_ID",
        "SASL_AUTHENTICATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "TOPIC_EXCEPTION",
        "UNKNOWN_TOPIC_OR_PART",
        "UNSUPPORTED_SASL_MECHANISM",
        "UNSUPPORTED_VERSION",
        "_AUTHENTICATION",
        "_UNKNOWN_PARTITION",
        "_UNKNOWN_TOPIC",
        "_UNSUPPORTED_FEATURE",
    }
)
"""Permanent errors: another attempt fails in the same way. All others are temporary."""

SUSPECT: Final = frozenset({"_RESOLVE", "_SSL"})
"""Temporary errors that at startup probably mean a wrong setting."""

END_OF_PARTITION: Final = "_PARTITION_EOF"
NO_TOKEN: Final = "_NO_TOKEN"  # noqa: S105
"""Our own name of librdkafka's ``_AUTHENTICATION`` where no token was to be had."""

OUT_OF_RANGE: Final = frozenset({"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"})
UNKNOWN_PARTITION: Final = "_UNKNOWN_PARTITION"

FATAL_TO_ALL: Final = PERMANENT | SUSPECT | {"_ALL_BROKERS_DOWN", "_FATAL", NO_TOKEN}
"""Errors that end all receivers if the client reports them for no particular partition. A single
broken connection (``_TRANSPORT``) does not: the client opens another."""


class TokenError(SuspectSettingError):
    """The identity gives no token; another attempt may succeed. The message has the remedy."""

    names_remedy = True


@dataclass(frozen=True, slots=True)
class ClientError:
    """An error that the client reports for no particular partition."""

    name: str
    text: str
    is_fatal: bool = False
    """True if this client will not work any more; a new one may."""

    @property
    def ends_all(self) -> bool:
        """Whether it ends all receivers of the client."""
        return self.is_fatal or self.name in FATAL_TO_ALL


def error_for(what: str, name: str, text: str) -> SourceError:
    """Return the error of ``eventproc.errors`` for an error name of the client."""
    message = f"{what}: {text} ({name})"
    if name == NO_TOKEN:
        return TokenError(f"{what}: {text}")
    if name in PERMANENT:
        return SourceRejectedError(message)
    if name in SUSPECT:
        return SuspectSettingError(message)
    return SourceUnavailableError(message)
