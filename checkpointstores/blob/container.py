"""The requests that the blob store makes to a container, and the errors for their answers.

``records.py`` uses this interface, so it does not depend on Azure's client.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from checkpointstores.requests import ConditionFailedError
from eventproc.errors import StoreRejectedError, StoreUnavailableError
from eventproc.identity.storage_account import NO_ACCOUNT

_RACE_STATUSES: Final = frozenset(
    {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED}
)
_RACE_CODES: Final = frozenset(
    {
        "BlobAlreadyExists",
        "BlobNotFound",
        "ConditionNotMet",
        "ResourceAlreadyExists",
        "ResourceNotFound",
    }
)
"""Error codes that mean that the blob changed since it was read, so another writer was first. Other
codes with the same statuses (a blob lease, a container that is being deleted) do not mean that, and
the outcome stays unknown."""

_LACKS_RIGHT: Final = frozenset(
    {
        "AuthorizationPermissionMismatch",
        "AuthorizationResourceTypeMismatch",
        "AuthorizationServiceMismatch",
    }
)
"""Error codes that mean that the credential is valid but lacks the right for the request."""

_WHY_BY_CODE: Final = {
    "ContainerNotFound": "the container does not exist; create it with `eventproc store init "
    "--store blob:{name}`, or let a processor create it when it starts (create_container=True, "
    "--create-container)",
    "ResourceNotFound": NO_ACCOUNT,
}

ROLE: Final = "Storage Blob Data Contributor"
"""The built-in role of Azure that includes every right that a store needs."""

_REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_BUSY: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


class Right(StrEnum):
    """The right that a request needs, with the names of Azure's permissions."""

    LIST = "list blobs"
    READ = "read blobs"
    WRITE = "write blobs"
    DELETE = "delete blobs"
    CREATE_CONTAINER = "create the container"


_OF_ONE_BLOB: Final = frozenset({Right.READ, Right.WRITE, Right.DELETE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The version that a write created."""

    etag: str
    last_modified: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobItem:
    """One version of a blob."""

    name: str
    etag: str
    last_modified: datetime
    metadata: Mapping[str, str | None] = field(default_factory=dict)
    body: bytes = b""
    """Empty in a listing, and if it was not requested."""

    is_folder: bool = False
    """True for the stub of a directory, on accounts with a hierarchical namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All blobs below a prefix."""

    items: tuple[BlobItem, ...]
    as_of: datetime
    """The service's time in the answer with the first page. Relative to it, records on later pages
    can only appear younger than they are, never older."""


class BlobContainer(Protocol):
    """A container of blobs. Each method is one request, or one for each page of a listing.

    All methods raise ``StoreUnavailableError`` if there is no answer or a temporary failure, and
    ``StoreRejectedError`` if the service refuses permanently. Writes also raise
    ``ConditionFailedError``.
    """

    async def list(self, prefix: str) -> Listing:
        """Return all blobs whose names begin with *prefix*, with metadata."""

    async def read(self, name: str, *, body_bytes_max: int = 0) -> BlobItem | None:
        """Return a blob, metadata and body of one version, or ``None``.

        With *body_bytes_max* 0 the body is not read; a longer body is truncated to one byte more
        than *body_bytes_max*.
        """

    async def put(
        self, name: str, metadata: Mapping[str, str], body: bytes, *, etag: str | None
    ) -> Written:
        """Write metadata and body atomically. With *etag* ``None``: only if there is no blob."""

    async def set_metadata(self, name: str, metadata: Mapping[str, str], *, etag: str) -> Written:
        """Replace all metadata and keep the body."""

    async def delete(self, name: str, *, etag: str) -> None:
        """Delete a blob."""


def error_for(
    status: int,
    code: str,
    *,
    place: str,
    right: Right,
    was_repeated: bool = False,
    expired_at: str = "",
    is_identity: bool = False,
    url: str = "",
) -> StoreUnavailableError | StoreRejectedError | ConditionFailedError:
    """Return the error for an answer that is not a success.

    Args:
        status: The HTTP status; 0 if the request could not be signed.
        code: The service's error code, empty if something else answered; with status 0, the reason
            why signing failed.
        place: The container, for error messages.
        right: The right that the request needs.
        was_repeated: Whether the request was sent more than once.
        expired_at: When its SAS token expired, or empty.
        is_identity: Whether the credential is a token of Entra ID, whose rights are roles.
        url: The address that was requested.
    """
    if status in _RACE_STATUSES and code in _RACE_CODES and right in _OF_ONE_BLOB:
        return ConditionFailedError(was_repeated=was_repeated)
    answer = f"({status} {code})" if code else f"({status} without an error code)"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _BUSY or (status and not code):
        return StoreUnavailableError(f"blob container {place} cannot answer now {answer}")
    if code.startswith("Lease"):
        return StoreRejectedError(
            f"blob container {place}: another program has a lease on the blob "
            f"{unquote(urlsplit(url).path)} {answer}, so nobody else can write it: end the lease "
            "(az storage blob lease break), and let that program use another container"
        )
    if code in _WHY_BY_CODE:
        why = _WHY_BY_CODE[code].format(name=place.rpartition("/")[2])
    elif not status:
        why = f"no request can be signed with the credential ({code}); is the account key complete?"
    elif expired_at:
        why = f"the SAS token expired at {expired_at} {answer}; give a new one"
    elif status in _REFUSED or code in _LACKS_RIGHT:
        why = _why_refused(code, answer, right, is_identity=is_identity)
    else:
        why = f"the service refuses the request {answer}"
    return StoreRejectedError(f"blob container {place} cannot be used: {why}")


def _why_refused(code: str, answer: str, right: Right, *, is_identity: bool) -> str:
    if code in _LACKS_RIGHT and is_identity:
        return (
            f"the identity lacks the right to {right} {answer}; assign it the role {ROLE} on the "
            "container or the storage account (it takes effect after some minutes)"
        )
    if code in _LACKS_RIGHT:
        return (
            f"the credential lacks the right to {right} {answer}; it needs the rights to list, "
            "read, write and delete"
        )
    if is_identity:
        return (
            f"the token is refused {answer}; check that the storage account belongs to the "
            "identity's tenant, and whether its network rules let this machine in"
        )
    return (
        f"the credential is refused {answer}; check the key or token, and whether the account's "
        "network rules let this machine in"
    )


def expiry_before(url: str, now: datetime | None) -> str:
    """Return when the SAS token in a request's URL expired, or an empty text if it has not."""
    for expiry in parse_qs(urlsplit(url).query).get("se", ()):
        try:
            is_over = now is not None and datetime.fromisoformat(expiry) <= now
        except (ValueError, TypeError):  # a date alone has no time zone
            is_over = False
        if is_over:
            return expiry
    return ""


def put_or_set(
    container: BlobContainer,
    name: str,
    metadata: dict[str, str],
    body: bytes | None,
    *,
    etag: str | None,
) -> Awaitable[Written]:
    """Make a conditional write. With *body* ``None`` an existing body is kept."""
    if body is None and etag is not None:
        return container.set_metadata(name, metadata, etag=etag)
    return container.put(name, metadata, body or b"", etag=etag)
