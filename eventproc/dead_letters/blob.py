"""Dead letters in Azure Blob Storage, one JSON blob for each event: sink and reader.

They need the extra ``blob``.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, timedelta
from functools import partial
from typing import Annotated, Any, Final, Self, TypeVar

from eventproc._base.extras import needing
from eventproc._base.network import HttpProxy
from eventproc._base.resource import AsyncResource
from eventproc._base.settings import SECRET, checked
from eventproc._base.tasks import together
from eventproc.errors import (
    ConfigurationError,
    DeadLetterError,
    LetterDamagedError,
    StoreError,
    StoreRejectedError,
)
from eventproc.models import DeadLetter, StoredLetter, letter_from_json
from eventproc.models._dead_letter import event_of
from eventproc.ports import DeadLetterReader, DeadLetterSink

with needing("blob"):
    from azure.storage.blob import ContentSettings

    from eventproc._base.azure_storage.answers import ConditionFailedError, Right
    from eventproc._base.azure_storage.blobs import BLOBS, BlobCredential
    from eventproc._base.azure_storage.connection import Connection, account_in, if_is

__all__ = ["BlobDeadLetterReader", "BlobDeadLetterSink"]

T = TypeVar("T")

_REQUEST_TIMEOUT: Final = timedelta(seconds=10)

_AT_ONCE_MAX: Final = 16
"""How many blobs are read at the same time."""

_TIME: Final = re.compile(r"([0-9]{8}T[0-9]{6}Z)?")
"""What follows the number in the name of a letter, if another event has that name already."""

_LETTERS: Final = replace(
    BLOBS,
    place="container of dead letters",
    remedy="create it with `eventproc store init --store blob:{name}` or in the portal, or correct "
    "the name or the connection string",
)


class _Container(AsyncResource):
    """The container of dead letters, and the folder in it.

    Args:
        account_url: for example ``https://contoso.blob.core.windows.net``.
        container: the name of the container.
        credential: a token credential, key or signature. It is not closed here.
        prefix: the folder below which letters are kept.
        ca_bundle: a file with the certificates to trust; by default those of the system.
        http_proxy: the HTTP proxy to connect through; by default that of ``HTTPS_PROXY``, if any.
    """

    @checked
    def __init__(
        self,
        account_url: Annotated[str, SECRET],
        container: str,
        credential: Annotated[BlobCredential | None, SECRET] = None,
        *,
        prefix: str = "dead-letters",
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> None:
        if not prefix.strip("/"):
            raise ConfigurationError("prefix is empty: give a folder for the dead letters")
        self._connection = Connection(
            _LETTERS,
            account_url,
            container,
            credential,
            request_timeout=_REQUEST_TIMEOUT,
            ca_bundle=ca_bundle,
            http_proxy=http_proxy,
        )
        self._prefix = prefix.strip("/")

    @classmethod
    @checked
    def from_connection_string(
        cls,
        connection_string: Annotated[str, SECRET],
        container: str,
        *,
        prefix: str = "dead-letters",
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> Self:
        """Build one from a storage account's connection string.

        Raises:
            ConfigurationError: it is not a connection string of a storage account; the message
                does not contain the key.
        """
        account_url, credential = account_in(connection_string, _LETTERS)
        return cls(
            account_url,
            container,
            credential,
            prefix=prefix,
            ca_bundle=ca_bundle,
            http_proxy=http_proxy,
        )

    async def open(self) -> None:
        """Connect, and check that the container exists.

        Raises:
            ConfigurationError: the container does not exist, or the credential is refused.
            DeadLetterError: the storage account did not answer.
        """
        await self._connection.open()
        try:
            properties = self._connection.client.get_container_properties
            await self._connection.ask(Right.LIST, properties)
        except StoreRejectedError as error:
            await self.close()
            raise ConfigurationError(str(error)) from error
        except StoreError as error:
            await self.close()
            raise DeadLetterError(str(error)) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def _ask(self, right: Right, call: Callable[[], Awaitable[T]], what: str) -> T:
        """Make a request; *what* it does is said in the error."""
        try:
            return await self._connection.ask(right, call)
        except StoreError as error:
            raise DeadLetterError(f"{what} a dead letter failed: {error}") from error

    async def _download(self, name: str) -> tuple[bytes, Any]:
        blob = await self._connection.client.download_blob(name)
        return await blob.readall(), blob.properties.etag


class BlobDeadLetterSink(_Container, DeadLetterSink):
    """Writes ``{prefix}/{namespace}/{hub}/{group}/{partition}/{sequence number}.json``.

    If a letter of the same event is stored again, it replaces the first one. If another event has
    that name already, because the hub was deleted and created again, the time at which the event
    was enqueued follows the number (``_20260131T021407Z``). The container must exist. It may be the
    container of the checkpoints: the stores do not read the blobs below ``dead-letters``.

    Args:
        account_url: for example ``https://contoso.blob.core.windows.net``.
        container: the name of the container.
        credential: a token credential, key or signature. The sink does not close it.
        prefix: the folder below which letters are kept.
    """

    async def store(self, letter: DeadLetter) -> None:
        """Write the letter; it replaces a letter of the same event.

        Raises:
            DeadLetterError: it was not stored, or may not be stored.
        """
        name = self._name(letter)
        try:
            await self._write(name, letter, overwrite=False)
        except ConditionFailedError:
            if await self._is_of_other_event(name, letter):
                time = letter.event.enqueued_time.astimezone(UTC)
                name = f"{name.removesuffix('.json')}_{time:%Y%m%dT%H%M%SZ}.json"
            try:
                await self._write(name, letter, overwrite=True)
            except ConditionFailedError as error:
                raise DeadLetterError(f"writing a dead letter failed: {error}") from error

    async def _write(self, name: str, letter: DeadLetter, *, overwrite: bool) -> None:
        upload = partial(
            self._connection.client.upload_blob,
            name,
            letter.to_json(),
            overwrite=overwrite,
            content_settings=ContentSettings(content_type="application/json"),
        )
        await self._ask(Right.WRITE, upload, "writing")

    async def _is_of_other_event(self, name: str, letter: DeadLetter) -> bool:
        """Whether the blob may have a letter of another event."""
        try:
            raw, _ = await self._connection.ask(Right.READ, partial(self._download, name))
            return event_of(letter_from_json(raw)) != event_of(letter)
        except (ConditionFailedError, LetterDamagedError):
            return False  # It was removed meanwhile, or there is nothing to keep.
        except StoreRejectedError:
            return True  # Without the right to read, rather keep a letter twice than none.
        except StoreError as error:
            raise DeadLetterError(f"reading a dead letter failed: {error}") from error

    def _name(self, letter: DeadLetter) -> str:
        group = "/".join(letter.group.key)
        number = f"{letter.event.sequence_number:019}"  # padded, so that listings are in order
        return f"{self._prefix}/{group}/{letter.partition_id}/{number}.json"


class BlobDeadLetterReader(_Container, DeadLetterReader):
    """Reads the letters of a ``BlobDeadLetterSink``, 16 blobs at the same time.

    The arguments are those of the sink. Blobs in the folder whose names are not names of letters
    are ignored.
    """

    async def letters(self) -> AsyncIterator[StoredLetter]:
        """Yield the letters of the container, by group, partition and sequence number."""
        # Read all names first, so that letters that are stored meanwhile are not yielded.
        listing = self._connection.client.list_blob_names(name_starts_with=f"{self._prefix}/")
        pages, names = listing.by_page(), []
        while (
            page := await self._ask(Right.LIST, lambda: anext(pages, None), "listing")
        ) is not None:
            names += [name async for name in page if _is_letter(name)]
        names.sort()
        for start in range(0, len(names), _AT_ONCE_MAX):
            some = names[start : start + _AT_ONCE_MAX]
            for stored in await together(*(self._read(name) for name in some)):
                if stored is not None:
                    yield stored

    async def remove(self, stored: StoredLetter) -> bool:
        """Delete a letter's blob, unless it was written again since it was read."""
        etag = stored.handle
        assert isinstance(etag, str), "a letter of this reader"
        delete = partial(self._connection.client.delete_blob, stored.place, **if_is(etag))
        try:
            await self._ask(Right.DELETE, delete, "removing")
        except ConditionFailedError:
            return False
        return True

    async def _read(self, name: str) -> StoredLetter | None:
        """Return a letter; ``None`` if it was removed since the listing."""
        try:
            raw, etag = await self._ask(Right.READ, partial(self._download, name), "reading")
        except ConditionFailedError:
            return None
        letter, damage = None, ""
        try:
            letter = letter_from_json(raw)
        except LetterDamagedError as error:
            damage = str(error)
        return StoredLetter(
            place=name,
            letter=letter,
            damage=damage,
            raw=b"" if letter else raw,
            handle=etag,
        )


def _is_letter(name: str) -> bool:
    stem, dot, kind = name.rpartition("/")[2].rpartition(".")
    number, _, time = stem.partition("_")
    return bool(dot) and kind == "json" and number.isdecimal() and _TIME.fullmatch(time) is not None
