"""The checkpoint store in an Azure Storage table."""

import re
from datetime import timedelta
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from checkpointstores.retry import retried
from checkpointstores.tables.azure_table import AzureTable, account_of, place_of
from checkpointstores.tables.records import TableRecords
from eventproc.errors import ConfigurationError, StoreRejectedError
from eventproc.extras import needing
from eventproc.identity import SharedCredential, shared
from eventproc.identity.storage_account import require_account
from eventproc.network import HttpProxy
from eventproc.settings import SECRET, Count, PositiveSpan, checked

with needing("tables"):
    from azure.core.credentials import (
        AzureNamedKeyCredential,
        AzureSasCredential,
        TokenCredential,
    )
    from azure.core.credentials_async import AsyncTokenCredential

TableCredential = (
    AzureNamedKeyCredential
    | AzureSasCredential
    | AsyncTokenCredential
    | TokenCredential
    | SharedCredential
)
"""An account key, a SAS token, or a token credential of azure-identity."""

_TABLE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")


class TableCheckpointStore(TableRecords):
    """Keeps records in a table of an Azure storage account, which costs much less than blobs.

    Build it from a connection string, or from the account's URL and a credential. One store may
    serve any number of groups; all processors of a group must use the same table. Processors of
    the Azure SDKs cannot share it.
    """

    @checked
    def __init__(
        self,
        account_url: Annotated[str, SECRET],
        table: str,
        credential: Annotated[TableCredential | None, SECRET] = None,
        *,
        create_table: bool = False,
        request_timeout: PositiveSpan = timedelta(seconds=10),
        concurrency_max: Count = 32,
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> None:
        """Build the store; ``open`` connects it.

        Args:
            account_url: For example ``https://contoso.table.core.windows.net``, optionally with a
                SAS token as its query.
            table: The name of the table: 3 to 63 letters and digits, a letter first.
            credential: ``None`` if the URL has a SAS token. The store does not close it. A token
                credential needs the role *Storage Table Data Contributor*.
            create_table: Create the table when the store is opened, if it does not exist. Off by
                default, because with a mistyped name the group would start without checkpoints and
                handle every event again.
            request_timeout: The time limit of a single request, which is tried up to three times.
            concurrency_max: Most requests at the same time.
            ca_bundle: A file with the certificates to trust; by default those of the system.
            http_proxy: The HTTP proxy to connect through; by default the one that the environment
                variable ``HTTPS_PROXY`` names, if any.
        """
        _check_address(account_url, table, credential)
        super().__init__(place_of(account_url, table), concurrency_max=concurrency_max)
        self._account_url = account_url
        self._table_name = table
        self._credential = shared(credential)
        self._creates_table = create_table
        self._request_timeout = request_timeout
        self._ca_bundle = ca_bundle
        self._settings: dict[str, Any] = {}
        if http_proxy is not None:
            self._settings["proxies"] = dict.fromkeys(("http", "https"), http_proxy.url_with_user)
        self._azure: AzureTable | None = None

    @classmethod
    @checked
    def from_connection_string(
        cls,
        connection_string: Annotated[str, SECRET],
        table: str,
        *,
        create_table: bool = False,
        request_timeout: PositiveSpan = timedelta(seconds=10),
        concurrency_max: Count = 32,
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> Self:
        """Build a store from a storage account's connection string.

        The other arguments are those of the class.

        Raises:
            ConfigurationError: the text is not a connection string of a storage account.
        """
        account_url, credential = account_of(connection_string)
        return cls(
            account_url,
            table,
            credential,
            create_table=create_table,
            request_timeout=request_timeout,
            concurrency_max=concurrency_max,
            ca_bundle=ca_bundle,
            http_proxy=http_proxy,
        )

    async def open(self) -> None:
        if self._azure is not None:
            return
        self._azure = await AzureTable.connect(
            self._account_url,
            self._table_name,
            self._credential,
            place=self._place,
            request_timeout=self._request_timeout,
            ca_bundle=self._ca_bundle,
            settings=self._settings,
        )
        try:
            if self._creates_table:
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


def _check_address(account_url: str, table: str, credential: object) -> None:
    """Check the address before anything is connected.

    Raises:
        ConfigurationError: the URL or the table's name is not valid, no credential is given, or a
            token would be sent without TLS.
    """
    url = urlsplit(account_url)
    if url.scheme not in {"http", "https"}:
        raise ConfigurationError(
            "begin it with https://, as in https://NAME.table.core.windows.net",
            setting="account_url",
        )
    require_account(account_url)
    if not _TABLE_NAME.fullmatch(table):
        raise ConfigurationError(
            "give 3 to 63 letters and digits, beginning with a letter",
            setting="table",
            value=repr(table),
        )
    if url.scheme == "http" and hasattr(credential, "get_token"):
        raise ConfigurationError(
            "begin it with https:// for a token credential, which is sent with each request",
            setting="account_url",
        )
    if credential is None and "sig=" not in url.query:
        raise ConfigurationError(
            "give a credential, or a SAS token as the query", setting="account_url"
        )
