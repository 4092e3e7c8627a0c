"""Dead letters as blobs: one JSON file for each event, in a container of an Azure storage account.

The only file here that imports ``azure.storage``. Needs the extra ``blob``.
"""

from datetime import timedelta
from functools import partial
from typing import Final, Self
from urllib.parse import urlsplit

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.credentials_async import AsyncTokenCredential
from azure.core.exceptions import AzureError, ResourceNotFoundError
from azure.storage.blob import ContentSettings
from azure.storage.blob.aio import ContainerClient

from eventproc.deadletter import DeadLetter
from eventproc.errors import ConfigurationError, DeadLetterError
from eventproc.ports import DeadLetterSink

REQUEST_TIMEOUT: Final = timedelta(seconds=10)

Credential = AzureNamedKeyCredential | AzureSasCredential | AsyncTokenCredential | str


class BlobDeadLetterSink(DeadLetterSink):
    """Writes ``{prefix}/{namespace}/{hub}/{group}/{partition}/{sequence number}.json``.

    A letter that comes again replaces the first one: the name is the event's. The container must
    exist. It may be that of the checkpoints: no reader of those looks below ``dead-letters``.

    Args:
        account_url: for example ``https://contoso.blob.core.windows.net``.
        container: its name.
        credential: a token credential, key or signature; it stays yours to close.
        prefix: the folder below which letters are kept.
    """

    def __init__(
        self,
        account_url: str,
        container: str,
        credential: Credential | None = None,
        *,
        prefix: str = "dead-letters",
    ) -> None:
        if not prefix.strip("/"):
            raise ConfigurationError("prefix is empty: give a folder for the dead letters")
        self._make = partial(ContainerClient, account_url, container, credential)
        self._container = container
        self._prefix = prefix.strip("/")
        self._client: ContainerClient | None = None

    @classmethod
    def from_connection_string(
        cls, connection_string: str, container: str, *, prefix: str = "dead-letters"
    ) -> Self:
        """Build a sink from a storage account's connection string.

        Raises:
            ConfigurationError: it is none; the message does not repeat the key.
        """
        try:
            client = ContainerClient.from_connection_string(connection_string, "any")
        except (ValueError, TypeError):
            raise ConfigurationError(
                "this is not the connection string of a storage account: it has AccountName=... "
                "and AccountKey=..."
            ) from None
        token = urlsplit(client.url).query
        url = f"{client.scheme}://{client.primary_hostname}" + (f"?{token}" if token else "")
        return cls(url, container, client.credential, prefix=prefix)

    async def open(self) -> None:
        """Connect, and look whether the container is there."""
        timeout_s = REQUEST_TIMEOUT.total_seconds()
        try:
            # One policy, and it is the caller's, who tries again for as long as it takes.
            self._client = self._make(
                retry_total=0, connection_timeout=timeout_s, read_timeout=timeout_s
            )
            await self._client.get_container_properties()
        except (ResourceNotFoundError, ValueError) as error:
            await self.close()
            raise ConfigurationError(
                f"container {self._container!r} for dead letters cannot be used: create it, or "
                f"correct the name or the connection string ({type(error).__name__})"
            ) from error
        except AzureError as error:
            await self.close()
            raise DeadLetterError(f"{self._container!r} did not answer: {error}") from error

    async def close(self) -> None:
        """Let go of the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def store(self, letter: DeadLetter) -> None:
        """Write the letter, over one of the same event."""
        if self._client is None:
            raise DeadLetterError("the sink is not open")
        try:
            await self._client.upload_blob(
                self._name(letter),
                letter.to_json(),
                overwrite=True,
                content_settings=ContentSettings(content_type="application/json"),
            )
        except AzureError as error:
            raise DeadLetterError(f"{self._container!r} did not take it: {error}") from error

    def _name(self, letter: DeadLetter) -> str:
        group = "/".join(letter.group.key)
        number = f"{letter.event.sequence_number:019}"  # So that a listing is in order.
        return f"{self._prefix}/{group}/{letter.partition_id}/{number}.json"
