"""What the client says, and what it means: refused for good, a suspect setting, or later.

Names with an underscore in front are librdkafka's own, the others the broker's.
"""

from dataclasses import dataclass
from typing import Final

from eventproc.errors import SourceError, SourceRejectedError, SourceUnavailableError

FOR_GOOD: Final = frozenset(
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
"""Asking again gives the same answer. Whatever is not here is worth another attempt."""

SUSPECT: Final = frozenset({"_RESOLVE", "_SSL"})

END_OF_PARTITION: Final = "_PARTITION_EOF"
OUT_OF_RANGE: Final = frozenset({"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"})
UNKNOWN_PARTITION: Final = "_UNKNOWN_PARTITION"

FATAL_TO_ALL: Final = FOR_GOOD | SUSPECT | {"_ALL_BROKERS_DOWN", "_FATAL"}
"""Said of no partition in particular, these end every link. A single connection that breaks
(``_TRANSPORT``) does not: the client makes another."""


class SuspectSettingError(SourceUnavailableError):
    """It may pass, but at a start a wrong setting is likelier: an unknown host, no TLS."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What the client says of itself, of no partition in particular."""

    name: str
    text: str
    is_fatal: bool = False
    """The client will never work again; another one may."""

    @property
    def ends_all(self) -> bool:
        """Whether no link can go on."""
        return self.is_fatal or self.name in FATAL_TO_ALL


def error_for(what: str, name: str, text: str) -> SourceError:
    """Return the error that a caller of the port shall get."""
    said = f"{what}: {text} ({name})"
    if name in FOR_GOOD:
        return SourceRejectedError(said)
    if name in SUSPECT:
        return SuspectSettingError(said)
    return SourceUnavailableError(said)
