"""Dead letters in Azure Blob Storage, one JSON blob for each event: sink and reader.

The only module of this package that imports ``azure.storage``. It needs the extra ``blob``.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final, Self, cast
from urllib.parse import urlsplit

from eventproc.concurrency.resource import AsyncResource
from eventproc.concurrency.tasks import together
from eventproc.errors import ConfigurationError, DeadLetterError, LetterDamagedError
from eventproc.extras import needing
from eventproc.identity import NoTokenError, SharedCredential, shared
from eventproc.identity.storage_account import require_account, require_endpoint
from eventproc.models import DeadLetter, StoredLetter, letter_from_json
from eventproc.network import HttpProxy
from eventproc.network.failures import failure_of, require_own_answer
from eventproc.ports import DeadLetterReader, DeadLetterSink
from eventproc.settings import SECRET, checked

with needing("blob"):
    from azure.core import MatchConditions
    from azure.core.credentials import (
        AzureNamedKeyCredential,
        AzureSasCredential,
        TokenCredential,
    )
    from azure.core.credentials_async import AsyncTokenCredential
    from azure.core.exceptions import (
        AzureError,
        HttpResponseError,
        ResourceModifiedError,
        ResourceNotFoundError,
    )
    from azure.storage.blob import ContentSettings
    from azure.storage.blob.aio import ContainerClient

REQUEST_TIMEOUT: Final = timedelta(seconds=10)

AT_ONCE_MAX: Final = 16
"""How many blobs are read at the same time."""

Credential = (
    AzureNamedKeyCredential
    | AzureSasCredential
    | AsyncTokenCredential
    | TokenCredential
    | SharedCredential
    | str
)

REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


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
        credential: Annotated[Credential | None, SECRET] = None,
        *,
        prefix: str = "dead-letters",
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> None:
        if not prefix.strip("/"):
            raise ConfigurationError("prefix is empty: give a folder for the dead letters")
        require_account(account_url)
        settings: dict[str, Any] = {"raw_response_hook": _check_answer}
        if ca_bundle is not None:
            settings["connection_verify"] = ca_bundle
        if http_proxy is not None:
            settings["proxies"] = dict.fromkeys(("http", "https"), http_proxy.url_with_user)
        self._make = partial(
            # Azure's client calls only what a shared credential has.
            ContainerClient,
            account_url,
            container,
            cast("Any", shared(credential)),
            **settings,
        )
        self._container = container
        self._prefix = prefix.strip("/")
        self._client: ContainerClient | None = None

    def _opened(self) -> ContainerClient:
        if self._client is None:
            raise DeadLetterError("the container is not open")
        return self._client

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
        connection_string = require_endpoint(connection_string, "blob")
        try:
            client = ContainerClient.from_connection_string(connection_string, "any")
        except (ValueError, TypeError):
            raise ConfigurationError(
                "this is not the connection string of a storage account: it has AccountName=... "
                "and AccountKey=..."
            ) from None
        token = urlsplit(client.url).query
        url = f"{client.scheme}://{client.primary_hostname}" + (f"?{token}" if token else "")
        key = client.credential
        credential = (
            None if key is None else AzureNamedKeyCredential(key.account_name, key.account_key)
        )
        return cls(
            url,
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
        timeout_s = REQUEST_TIMEOUT.total_seconds()
        try:
            # The client does not retry: the caller of the sink does.
            self._client = self._make(
                retry_total=0, connection_timeout=timeout_s, read_timeout=timeout_s
            )
            await self._client.get_container_properties()
        except (ResourceNotFoundError, ValueError) as error:
            await self.close()
            raise ConfigurationError(
                f"container {self._container!r} for dead letters cannot be used: create it, with "
                f"`eventproc store init --store blob:{self._container}` or in the portal, or "
                f"correct the name or the connection string ({type(error).__name__})"
            ) from error
        except (AzureError, NoTokenError, OSError) as error:
            await self.close()
            if reason := _setting_to_correct(error):
                raise ConfigurationError(
                    f"container {self._container!r} for dead letters cannot be used: {reason}"
                ) from error
            raise DeadLetterError(f"{self._container!r} did not answer: {error}") from error

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


class BlobDeadLetterSink(_Container, DeadLetterSink):
    """Writes ``{prefix}/{namespace}/{hub}/{group}/{partition}/{sequence number}.json``.

    If a letter of the same event is stored again, it replaces the first one. The container must
    exist. It may be the container of the checkpoints: the stores do not read the blobs below
    ``dead-letters``.

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
        try:
            await self._opened().upload_blob(
                self._name(letter),
                letter.to_json(),
                overwrite=True,
                content_settings=ContentSettings(content_type="application/json"),
            )
        except (AzureError, NoTokenError, OSError) as error:
            raise DeadLetterError(
                f"writing a dead letter to container {self._container!r} failed: {error}"
            ) from error

    def _name(self, letter: DeadLetter) -> str:
        group = "/".join(letter.group.key)
        number = f"{letter.event.sequence_number:019}"  # padded, so that listings are in order
        return f"{self._prefix}/{group}/{letter.partition_id}/{number}.json"


class BlobDeadLetterReader(_Container, DeadLetterReader):
    """Reads the letters of a ``BlobDeadLetterSink``, ``AT_ONCE_MAX`` blobs at the same time.

    The arguments are those of the sink. Blobs in the folder whose names are not names of letters
    are ignored.
    """

    async def letters(self) -> AsyncIterator[StoredLetter]:
        """Yield the letters of the container, by group, partition and sequence number."""
        client = self._opened()
        with self._answered("listing the dead letters of"):
            # Read all names first, so that letters that are stored during the iteration are not
            # yielded.
            listing = client.list_blob_names(name_starts_with=f"{self._prefix}/")
            names = sorted([name async for name in listing if _is_letter(name)])
        for start in range(0, len(names), AT_ONCE_MAX):
            some = names[start : start + AT_ONCE_MAX]
            for stored in await together(*(self._read(client, name) for name in some)):
                if stored is not None:
                    yield stored

    async def remove(self, stored: StoredLetter) -> bool:
        """Delete a letter's blob, unless it was written again since it was read."""
        etag = stored.handle
        assert isinstance(etag, str), "a letter of this reader"
        with self._answered("removing a dead letter from"):
            try:
                await self._opened().delete_blob(
                    stored.place, etag=etag, match_condition=MatchConditions.IfNotModified
                )
            except (ResourceNotFoundError, ResourceModifiedError):
                return False
        return True

    async def _read(self, client: ContainerClient, name: str) -> StoredLetter | None:
        """Return a letter; ``None`` if it was removed since the listing."""
        with self._answered("reading a dead letter of"):
            try:
                blob = await client.download_blob(name)
                raw = await blob.readall()
            except ResourceNotFoundError:
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
            handle=blob.properties.etag,
        )

    @contextmanager
    def _answered(self, what: str) -> Iterator[None]:
        try:
            yield
        except (AzureError, NoTokenError, OSError) as error:
            raise DeadLetterError(
                f"{what} container {self._container!r} failed: {error}"
            ) from error


def _check_answer(answer: Any) -> None:  # noqa: ANN401 - the client's type is private
    response = answer.http_response
    require_own_answer(response.status_code, response.headers)


def _is_letter(name: str) -> bool:
    stem, dot, kind = name.rpartition("/")[2].rpartition(".")
    return bool(dot) and kind == "json" and stem.isdecimal()


def _setting_to_correct(error: Exception) -> str:
    """Return why a credential, a certificate or a proxy is refused, or ``""`` for other errors."""
    if isinstance(error, NoTokenError):
        return str(error)
    if (failure := failure_of(error)) and failure.is_setting:
        return failure.reason
    if isinstance(error, HttpResponseError) and error.status_code in REFUSED:
        return (
            f"the credential is refused (status {error.status_code}). An identity needs the role "
            "Storage Blob Data Contributor on the container or the storage account"
        )
    return ""
