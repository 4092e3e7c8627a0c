"""Requests to a blob container: repeated, and with the outcomes of conditional writes."""

from collections.abc import Callable, Mapping
from functools import partial

from checkpointstores._requests import Requests, WriteAnswer, Written, outcome_of_deletion
from checkpointstores.blob._container import BlobContainer, BlobItem, Listing
from eventproc._base.azure_storage.answers import ConditionFailedError, Right
from eventproc.errors import StoreError
from eventproc.models import WriteOutcome


class BlobRequests(Requests[BlobContainer]):
    """The requests of a store to one container."""

    async def list(self, prefix: str) -> Listing:
        """Return all blobs whose names begin with *prefix*, with metadata."""
        return await self.ask(Right.LIST, partial(self.vendor.list, prefix))

    async def read(self, name: str, *, body_bytes_max: int = 0) -> BlobItem | None:
        """Return a blob, as ``BlobContainer.read`` does."""
        call = partial(self.vendor.read, name, body_bytes_max=body_bytes_max)
        return await self.ask(Right.READ, call)

    async def write(
        self,
        name: str,
        metadata: Mapping[str, str],
        body: bytes | None = None,
        *,
        etag: str | None,
        is_mine: Callable[[BlobItem], bool],
    ) -> WriteAnswer[BlobItem]:
        """Make a conditional write, and return its outcome.

        Args:
            name: The name of the blob.
            metadata: Its whole metadata.
            body: ``None`` keeps an existing body.
            etag: Of the blob to replace; ``None``: only if there is none.
            is_mine: Returns whether a blob, read after a lost answer, is what this call wrote.
        """
        put = partial(self.vendor.put, name, metadata, body, etag=etag)
        try:
            written = await self.ask(Right.WRITE, put)
        except ConditionFailedError as error:
            if not error.was_repeated:
                return WriteAnswer(WriteOutcome.LOST)
            # An attempt without an answer may have written the blob: read who did.
        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        else:
            return WriteAnswer(WriteOutcome.WON, written)
        try:
            # One byte more than this call's body, so that a longer one differs, also from none.
            bytes_max = 0 if body is None else len(body) + 1
            found = await self.read(name, body_bytes_max=bytes_max)
        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        if found is not None and is_mine(found):
            version = Written(etag=found.etag, last_modified=found.last_modified)
            return WriteAnswer(WriteOutcome.WON, version)
        return WriteAnswer(WriteOutcome.LOST)

    async def delete(self, name: str, etag: str | None) -> WriteOutcome:
        """Delete a blob if it still has *etag*; ``WON`` too if there is none."""
        return await outcome_of_deletion(
            etag,
            lambda etag: self.ask(Right.DELETE, partial(self.vendor.delete, name, etag=etag)),
            partial(self.read, name),
        )
