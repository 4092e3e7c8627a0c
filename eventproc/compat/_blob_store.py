"""The blob container of Azure's ``BlobCheckpointStore``, with members, fencing and hand-overs."""

from collections.abc import Awaitable, Generator
from typing import Any, Final, Self
from urllib.parse import urlsplit

from azure.core.credentials import AzureNamedKeyCredential

from checkpointstores.blob import BlobCheckpointStore as Store
from eventproc._base.azure_storage.blobs import BLOBS, BlobCredential
from eventproc._base.azure_storage.connection import account_in
from eventproc.errors import ConfigurationError

_NO_EFFECT: Final = frozenset(
    (
        *("connection_timeout", "read_timeout", "connection_data_block_size", "location_mode"),
        *("max_block_size", "max_chunk_get_size", "max_page_size", "max_single_get_size"),
        *("max_single_put_size", "min_large_block_upload_threshold", "use_byte_buffer"),
        *("retry_connect", "retry_policy", "retry_read", "retry_status", "retry_to_secondary"),
        *("retry_total", "initial_backoff", "increment_base", "backoff", "headers", "user_agent"),
        *("logging_enable", "logging_body", "audience"),
    )
)
"""Keyword arguments of Azure's container client that change no result. The store's own requests
have a time limit of 10 s, and are tried three times."""


class _Closed:
    """What ``close`` returns: the client for an event loop awaits it, the other does not."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


class BlobCheckpointStore:
    """Use it where a program has Azure's ``BlobCheckpointStore``, for either client.

    It has the arguments of that class, and the records are the same blobs.
    """

    def __init__(
        self,
        blob_account_url: str,
        container_name: str,
        credential: BlobCredential | None = None,
        *,
        api_version: str | None = None,
        secondary_hostname: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - of Azure's container client
    ) -> None:
        """Take Azure's arguments; nothing connects before ``receive``.

        Args:
            blob_account_url: The URL of the storage account.
            container_name: The container, which must exist.
            credential: Any of Azure's; ``None`` if the URL has a SAS token.
            api_version: Has no effect.
            secondary_hostname: Has no effect: nothing is read from it.
            kwargs: ``container_client`` and ``connection_verify``; others of Azure's container
                client have no effect, or are refused.

        Raises:
            ConfigurationError: an argument cannot be kept.
        """
        del api_version, secondary_hostname
        client = kwargs.pop("container_client", None)
        if client is not None:
            blob_account_url, container_name, credential = _of_client(client)
        verify = kwargs.pop("connection_verify", None)
        if verify is not None and not isinstance(verify, str):
            raise ConfigurationError(
                "give the path of a file with certificates, or leave it out: certificates are "
                "always checked",
                setting="connection_verify",
                value=repr(verify),
            )
        for name in kwargs.keys() - _NO_EFFECT:
            raise ConfigurationError(
                "this store makes its own requests, and has no such setting: leave it out, or give "
                "checkpointstores.blob.BlobCheckpointStore as checkpoint_store",
                setting=name,
            )
        self._arguments = (blob_account_url, container_name, credential)
        self._ca_bundle: str | None = verify
        self.new_store()  # Refuses what cannot work here, and not in ``receive``.

    @classmethod
    def from_connection_string(
        cls,
        conn_str: str,
        container_name: str,
        credential: BlobCredential | None = None,
        **kwargs: Any,  # noqa: ANN401 - those of the class
    ) -> Self:
        """Build a store from a storage account's connection string.

        Raises:
            ConfigurationError: the text is no such string, or an argument cannot be kept.
        """
        account_url, found = account_in(conn_str, BLOBS)
        return cls(account_url, container_name, credential or found, **kwargs)

    def __repr__(self) -> str:
        return f"BlobCheckpointStore({self._arguments[1]!r})"

    def new_store(self) -> Store:
        """Return a new store of eventproc; each call of ``receive`` has its own."""
        url, container, credential = self._arguments
        return Store(url, container, credential, ca_bundle=self._ca_bundle)

    def close(self) -> Awaitable[None]:
        """Do nothing: each call of ``receive`` closes its own connections."""
        return _Closed()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing, as ``close``."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Do nothing, as ``close``."""


def _of_client(client: Any) -> tuple[str, str, BlobCredential | None]:  # noqa: ANN401 - any ContainerClient
    """Return account, container and credential of Azure's container client."""
    url, credential = urlsplit(client.url), client.credential
    if hasattr(credential, "account_key"):
        credential = AzureNamedKeyCredential(credential.account_name, credential.account_key)
    path = url.path.rstrip("/").removesuffix(f"/{client.container_name}")
    account_url = url._replace(path=path).geturl()
    return account_url, client.container_name, credential
