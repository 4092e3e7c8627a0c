"""What the blob store asks of a container: single round trips, each with an outcome that is clear.

The records' logic stands on this and knows no vendor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Final, Protocol

from eventproc.errors import StoreCorruptError, StoreUnavailableError

_RACE_STATUSES: Final = frozenset(
    {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED}
)
_RACE_CODES: Final = frozenset(
    {
        "",  # an answer to HEAD has no body and, from some servers, no code
        "BlobAlreadyExists",
        "BlobNotFound",
        "ConditionNotMet",
        "ResourceAlreadyExists",
        "ResourceNotFound",
    }
)
"""With one of these the blob is not as it was read: somebody else was first. With others (a lease,
a container that is being deleted) nobody was, and the outcome must stay unknown."""

_REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_BUSY: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


class ConditionFailedError(Exception):
    """The blob is not as the caller read it: changed, made, or gone meanwhile.

    Never leaves the stores: there it becomes ``WriteOutcome.LOST``, or is recognised.
    """

    def __init__(self, *, was_repeated: bool) -> None:
        super().__init__("the blob is not as it was read")
        self.was_repeated = was_repeated
        """True when the request was sent more than once under the caller's feet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The version that a write made."""

    etag: str
    last_modified: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobItem:
    """A blob as it was at one moment."""

    name: str
    etag: str
    last_modified: datetime
    metadata: Mapping[str, str | None] = field(default_factory=dict)
    body: bytes = b""
    """Empty in a listing, and where it was not asked for."""

    is_folder: bool = False
    """A stub that stands for a directory, on accounts that have directories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All blobs below a prefix."""

    items: tuple[BlobItem, ...]
    as_of: datetime | None
    """The service's clock when it answered for the first page: records on later pages can only
    seem younger by it, never older."""


class BlobContainer(Protocol):
    """One round trip for each method, or a few where one needs pages.

    All raise ``StoreUnavailableError`` when no answer came that tells, ``StoreCorruptError`` when
    the service refuses for good, and writes ``ConditionFailedError``.
    """

    async def list(self, prefix: str) -> Listing:
        """All blobs whose names begin so, with metadata."""

    async def read(self, name: str, *, body_bytes_max: int = 0) -> BlobItem | None:
        """One blob, metadata and body of one version; ``None`` if there is none.

        0 leaves the body out; a longer body is cut one byte beyond *body_bytes_max*.
        """

    async def put(
        self, name: str, metadata: Mapping[str, str], body: bytes, *, etag: str | None
    ) -> Written:
        """Write metadata and body in one; ``None``: only if there is no such blob."""

    async def set_metadata(self, name: str, metadata: Mapping[str, str], *, etag: str) -> Written:
        """Replace all metadata and keep the body."""

    async def delete(self, name: str, *, etag: str) -> None:
        """Delete a blob; one already gone is fine."""


def meaning(
    status: int, code: str, *, was_repeated: bool
) -> StoreUnavailableError | StoreCorruptError | ConditionFailedError:
    """The error for an HTTP status (0: refused before it was sent) and the service's own code."""
    if status in _RACE_STATUSES and code in _RACE_CODES:
        return ConditionFailedError(was_repeated=was_repeated)
    if code == "ContainerNotFound":
        return StoreCorruptError("the container does not exist")
    if status in _REFUSED or not status:
        return StoreCorruptError(f"the credential is refused ({status} {code})")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _BUSY:
        return StoreUnavailableError(f"the service cannot answer now ({status} {code})")
    return StoreCorruptError(f"the service refuses the request ({status} {code})")
