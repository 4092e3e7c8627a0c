"""The checkpoint store in an Azure Blob container, which Azure's own processors can share."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Self, cast
from urllib.parse import urlsplit

from checkpointstores.blob.address import checked_address
from checkpointstores.blob.azure_container import AzureContainer
from checkpointstores.blob.records import BlobRecords
from checkpointstores.retry import retried
from eventproc.errors import ConfigurationError, StoreRejectedError
from eventproc.extras import needing
from eventproc.identity import SharedCredential, shared
from eventproc.identity.storage_account import require_endpoint
from eventproc.network import HttpProxy
from eventproc.settings import SECRET, Count, PositiveSpan, checked

with needing("blob"):
    from azure.core.credentials import (
        AzureNamedKeyCredential,
        AzureSasCredential,
        TokenCredential,
    )
    from azure.core.credentials_async import AsyncTokenCredential
    from azure.storage.blob.aio import ContainerClient

    from checkpointstores.transport import new_transport, ssl_context_for

BlobCredential = (
    str
    | AzureNamedKeyCredential
    | AzureSasCredential
    | AsyncTokenCredential
    | TokenCredential
    | SharedCredential
)
"""An account key or a SAS token as text, or a credential object of azure-core or azure-identity."""


class BlobCheckpointStore(BlobRecords):
    """Keeps records in a blob container, which processors of the Azure SDKs may share.

    Build it from a connection string, or from the account's URL and a credential. One store may
    serve any number of groups; all processors of a group must use the same container.
    """

    @checked
    def __init__(
        self,
        account_url: Annotated[str, SECRET],
        container: str,
        credential: Annotated[BlobCredential | None, SECRET] = None,
        *,
        create_container: bool = False,
        request_timeout: PositiveSpan = timedelta(seconds=10),
        concurrency_max: Count = 32,
        legacy_prefix: str | None = None,
        namespace: str | None = None,
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> None:
        """Build the store; ``open`` connects it.

        Args:
            account_url: For example ``https://contoso.blob.core.windows.net``, optionally with a
                SAS token as its query.
            container: The name of the container.
            credential: ``None`` if the URL has a SAS token. The store does not close it. A token
                credential may be given to a source as well; it needs the role *Storage Blob Data
                Contributor*.
            create_container: Create the container when the store is opened, if it does not exist.
                Off by default, because with a mistyped name the group would start without
                checkpoints and handle every event again; also, no other request needs this right.
            request_timeout: The time limit of a single request, which is tried up to three times.
            concurrency_max: Most requests at the same time.
            legacy_prefix: For a partition without a checkpoint, read a lease of
                ``EventProcessorHost`` in ``{legacy_prefix}{group}/{partition}``, or of Azure
                Functions with the prefix ``{namespace}/{hub}/``. Leases are never written.
            namespace: The beginning of the blobs' names, instead of the group's namespace, to
                share a group with processors that spell the namespace differently. The JavaScript
                SDK does so if the connection string has a port.
            ca_bundle: A file with the certificates to trust; by default those of the system.
            http_proxy: The HTTP proxy to connect through; by default the one that the environment
                variable ``HTTPS_PROXY`` names, if any.
        """
        has_token = hasattr(credential, "get_token")
        super().__init__(
            checked_address(account_url, container, has_token=has_token, namespace=namespace),
            concurrency_max=concurrency_max,
            legacy_prefix=legacy_prefix,
            namespace=namespace,
        )
        self._is_identity = has_token
        settings: dict[str, Any] = {}
        if http_proxy is not None:
            settings["proxies"] = dict.fromkeys(("http", "https"), http_proxy.url_with_user)
        self._new_client = partial(
            # Azure's client calls only what a shared credential has.
            ContainerClient,
            account_url,
            container,
            cast("Any", shared(credential)),
            **settings,
        )
        self._ca_bundle = ca_bundle
        self._creates_container = create_container
        self._request_timeout = request_timeout
        self._azure: AzureContainer | None = None

    @classmethod
    @checked
    def from_connection_string(
        cls,
        connection_string: Annotated[str, SECRET],
        container: str,
        *,
        create_container: bool = False,
        request_timeout: PositiveSpan = timedelta(seconds=10),
        concurrency_max: Count = 32,
        legacy_prefix: str | None = None,
        namespace: str | None = None,
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> Self:
        """Build a store from a storage account's connection string.

        The other arguments are those of the class.

        Raises:
            ConfigurationError: the text is not a connection string of a storage account, or names
                only other services of it.
        """
        connection_string = require_endpoint(connection_string, "blob")
        try:
            client = ContainerClient.from_connection_string(connection_string, "any")
        except (ValueError, TypeError):
            # ``from None``: the client's message may quote the connection string, with the key.
            raise ConfigurationError(
                "this is not the connection string of a storage account: it has AccountName=... "
                "and AccountKey=... (one of Event Hubs, with Endpoint=sb://..., is for the source)"
            ) from None
        sas_token, key = urlsplit(client.url).query, client.credential
        return cls(
            f"{client.scheme}://{client.primary_hostname}" + (f"?{sas_token}" if sas_token else ""),
            container,
            None if key is None else AzureNamedKeyCredential(key.account_name, key.account_key),
            create_container=create_container,
            request_timeout=request_timeout,
            concurrency_max=concurrency_max,
            legacy_prefix=legacy_prefix,
            namespace=namespace,
            ca_bundle=ca_bundle,
            http_proxy=http_proxy,
        )

    async def open(self) -> None:
        if self._azure is not None:
            return
        ssl_context = await asyncio.to_thread(ssl_context_for, self._ca_bundle)
        transport = new_transport(self._request_timeout, ssl_context)
        # The client must not retry: it would hide that an answer was lost. ``retried`` does it.
        client = self._new_client(transport=transport, retry_total=0)
        self._azure = AzureContainer(
            client,
            self._place,
            request_timeout=self._request_timeout,
            is_identity=self._is_identity,
            log=self._log,
        )
        try:
            if self._creates_container:
                await retried(self._azure.create)
            await retried(self._azure.check)
        except StoreRejectedError as error:
            await self.close()
            raise ConfigurationError(str(error)) from error
        except BaseException:
            await self.close()
            raise
        self._attach(self._azure)

    async def close(self) -> None:
        self._detach()
        azure, self._azure = self._azure, None
        if azure is not None:
            await azure.close()
