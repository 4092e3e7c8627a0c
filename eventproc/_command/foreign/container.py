"""A blob container that belongs to another program."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, Self

from checkpointstores.blob._azure_container import AzureContainer
from checkpointstores.blob._requests import BlobRequests
from eventproc._base.azure_storage.blobs import BLOBS, BlobCredential
from eventproc._base.azure_storage.connection import Connection, account_in
from eventproc._base.logs import get_logger
from eventproc._base.network import HttpProxy
from eventproc._base.resource import AsyncResource
from eventproc._command.arguments.access import StorageAccess
from eventproc._command.foreign.place import Place

_SERVICE: Final = replace(
    BLOBS, remedy="check the name {name}, and that it is in this storage account"
)


class ForeignContainer(BlobRequests, AsyncResource):
    """The requests to such a container, which is never created."""

    def __init__(
        self,
        account_url: str,
        container: str,
        credential: BlobCredential | None = None,
        *,
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> None:
        connection: Connection[Any] = Connection(
            _SERVICE,
            account_url,
            container,
            credential,
            request_timeout=timedelta(seconds=10),
            ca_bundle=ca_bundle,
            http_proxy=http_proxy,
        )
        log = get_logger("eventproc.positions", container=connection.place)
        vendor = AzureContainer(connection, is_created=False, log=log)
        super().__init__(vendor, log, concurrency_max=32)

    @classmethod
    def from_connection_string(
        cls,
        connection_string: str,
        container: str,
        **settings: Any,  # noqa: ANN401 - those of the class
    ) -> Self:
        """Make the requests from a storage account's connection string."""
        account_url, credential = account_in(connection_string, BLOBS)
        return cls(account_url, container, credential, **settings)


def container_at(place: Place, access: StorageAccess) -> ForeignContainer:
    """Make the container at a place, without opening it.

    Raises:
        ConfigurationError: The account is not given.
    """
    return place.storage(access).in_account(ForeignContainer, place.name, str(place))
