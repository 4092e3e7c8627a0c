"""Where Capture files are: a blob container, or a folder with copies of them."""

import asyncio
import os
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Self, TypeVar

from eventproc._base.azure_storage.answers import ConditionFailedError, Right
from eventproc._base.azure_storage.blobs import BLOBS, BlobCredential
from eventproc._base.azure_storage.connection import Connection, account_in
from eventproc._base.capture_names import DEFAULT_FORMAT, check_format
from eventproc._base.network import HttpProxy
from eventproc._base.resource import AsyncResource
from eventproc._base.settings import SECRET, checked
from eventproc.errors import (
    ConfigurationError,
    SourceRejectedError,
    SourceUnavailableError,
    StoreError,
    StoreRejectedError,
)

T = TypeVar("T")

NameAndSize = tuple[str, int]

_REQUEST_TIMEOUT: Final = timedelta(seconds=30)

_CAPTURED: Final = replace(
    BLOBS,
    place="container of Capture files",
    role="Storage Blob Data Reader",
    remedy="correct its name or the connection string; Capture's settings of the event hub say "
    "where it writes",
)


class CaptureFiles(AsyncResource):
    """Capture files of one event hub or of several.

    Args:
        name_format: How Capture names its files, as in its settings. The placeholders
            ``{Namespace}`` and ``{EventHub}`` may be replaced by the names.
        since: Leave out files of windows that ended before this time.
    """

    def __init__(self, *, name_format: str = DEFAULT_FORMAT, since: datetime | None = None) -> None:
        self.name_format: Final = check_format(name_format)
        self.since: Final = since
        if since is not None and since.tzinfo is None:
            raise ConfigurationError("give it a time zone", setting="since", value=str(since))

    @abstractmethod
    def names(self, prefix: str, *, is_first_enough: bool = False) -> AsyncIterator[NameAndSize]:
        """Return the files whose names begin with *prefix*, in the order of their names.

        *is_first_enough*: the caller will probably take no more than the first.

        Raises:
            SourceUnavailableError: no answer.
            SourceRejectedError: they may not be listed.
        """

    @abstractmethod
    async def read(self, name: str, start: int, byte_count: int) -> bytes:
        """Return up to so many bytes of a file.

        Raises:
            SourceUnavailableError: no answer, or the file is gone.
            SourceRejectedError: it may not be read.
        """


class BlobCaptureFiles(CaptureFiles):
    """Capture files where Event Hubs writes them: in Blob Storage or Data Lake Storage Gen2.

    Args:
        account_url: For example ``https://contoso.blob.core.windows.net``.
        container: The name of the container.
        credential: A token credential, key or signature, which may read and list. It is not closed
            here.
        name_format: As for ``CaptureFiles``.
        since: As for ``CaptureFiles``.
        ca_bundle: A file with the certificates to trust; by default those of the system.
        http_proxy: The HTTP proxy to connect through; by default that of ``HTTPS_PROXY``, if any.
    """

    @checked
    def __init__(
        self,
        account_url: Annotated[str, SECRET],
        container: str,
        credential: Annotated[BlobCredential | None, SECRET] = None,
        *,
        name_format: str = DEFAULT_FORMAT,
        since: datetime | None = None,
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> None:
        super().__init__(name_format=name_format, since=since)
        self._connection = Connection(
            _CAPTURED,
            account_url,
            container,
            credential,
            request_timeout=_REQUEST_TIMEOUT,
            ca_bundle=ca_bundle,
            http_proxy=http_proxy,
        )

    @classmethod
    @checked
    def from_connection_string(
        cls,
        connection_string: Annotated[str, SECRET],
        container: str,
        **settings: Any,  # noqa: ANN401 - those of the constructor
    ) -> Self:
        """Build one from a storage account's connection string.

        Raises:
            ConfigurationError: it is not a connection string of a storage account; the message
                does not contain the key.
        """
        return cls(*_place(connection_string, container), **settings)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.place!r})"

    async def open(self) -> None:
        """Connect, and check that the container exists.

        Raises:
            ConfigurationError: it does not exist, or the credential is refused.
            SourceUnavailableError: the storage account did not answer.
        """
        await self._connection.open()
        try:
            properties = self._connection.client.get_container_properties
            await self._connection.ask(Right.LIST, properties)
        except StoreError as error:
            await self.close()
            is_final = isinstance(error, StoreRejectedError)
            kind = ConfigurationError if is_final else SourceUnavailableError
            raise kind(str(error)) from error

    async def close(self) -> None:
        await self._connection.close()

    async def names(
        self, prefix: str, *, is_first_enough: bool = False
    ) -> AsyncIterator[NameAndSize]:
        pages = self._connection.client.list_blobs(
            name_starts_with=prefix, results_per_page=10 if is_first_enough else None
        ).by_page()

        async def next_page() -> Sequence[NameAndSize] | None:
            page = await anext(pages, None)
            return None if page is None else [(blob.name, blob.size) async for blob in page]

        while (page := await self._ask(Right.LIST, next_page)) is not None:
            for found in page:
                yield found

    async def read(self, name: str, start: int, byte_count: int) -> bytes:
        async def download() -> bytes:
            client = self._connection.client
            loader = await client.download_blob(name, offset=start, length=byte_count)
            data: bytes = await loader.readall()
            return data

        try:
            return await self._ask(Right.READ, download)
        except ConditionFailedError as error:
            raise SourceUnavailableError(f"Capture file {name} was deleted or replaced") from error

    async def _ask(self, right: Right, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await self._connection.ask(right, call)
        except StoreError as error:
            is_final = isinstance(error, StoreRejectedError)
            kind = SourceRejectedError if is_final else SourceUnavailableError
            raise kind(str(error)) from error


def _place(connection_string: str, container: str) -> tuple[str, str, Any]:
    account_url, credential = account_in(connection_string, _CAPTURED)
    return account_url, container, credential


class FolderCaptureFiles(CaptureFiles):
    """Capture files in a local folder, such as copies, or those of the emulator.

    Args:
        folder: The folder; the names of files are relative to it.
        name_format: As for ``CaptureFiles``.
        since: As for ``CaptureFiles``.
    """

    @checked
    def __init__(
        self, folder: Path, *, name_format: str = DEFAULT_FORMAT, since: datetime | None = None
    ) -> None:
        super().__init__(name_format=name_format, since=since)
        self._folder = folder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._folder)!r})"

    async def open(self) -> None:
        """Check that the folder exists.

        Raises:
            ConfigurationError: it does not.
        """
        if not await asyncio.to_thread(self._folder.is_dir):
            raise ConfigurationError(f"there is no folder {self._folder} with Capture files")

    async def close(self) -> None:
        """Do nothing."""

    async def names(
        self,
        prefix: str,
        *,
        is_first_enough: bool = False,  # noqa: ARG002 - the whole list costs little here
    ) -> AsyncIterator[NameAndSize]:
        for found in await asyncio.to_thread(self._list, prefix):
            yield found

    def _list(self, prefix: str) -> Sequence[NameAndSize]:
        found = []
        for place, _, files in os.walk(self._folder / prefix.rpartition("/")[0]):
            for path in (Path(place, file) for file in files):
                name = path.relative_to(self._folder).as_posix()
                if name.startswith(prefix):
                    with suppress(FileNotFoundError):  # It may be deleted just now.
                        found.append((name, path.stat().st_size))
        return sorted(found)

    async def read(self, name: str, start: int, byte_count: int) -> bytes:
        try:
            return await asyncio.to_thread(self._read, name, start, byte_count)
        except OSError as error:
            raise SourceUnavailableError(f"Capture file {name}: {error.strerror}") from error

    def _read(self, name: str, start: int, byte_count: int) -> bytes:
        with (self._folder / name).open("rb") as file:
            file.seek(start)
            return file.read(byte_count)
