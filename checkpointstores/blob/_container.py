"""The requests that the blob store makes to a container.

The store uses this interface, so it does not depend on Azure's client.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from checkpointstores._requests import Vendor, Written


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

    is_leased: bool = False
    """Whether a process holds a lease of Azure Storage on the blob; unknown in a listing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All blobs below a prefix."""

    items: tuple[BlobItem, ...]
    as_of: datetime
    """The service's time in the answer with the first page. Relative to it, records on later pages
    can only appear younger than they are, never older."""


class BlobContainer(Vendor, Protocol):
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
        self, name: str, metadata: Mapping[str, str], body: bytes | None, *, etag: str | None
    ) -> Written:
        """Write metadata and body atomically. With *etag* ``None``: only if there is no blob.

        With *body* ``None`` the body that is stored is kept.
        """

    async def delete(self, name: str, *, etag: str) -> None:
        """Delete a blob."""
