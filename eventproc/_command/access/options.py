"""The options that say how the hub and the storage account are reached."""

from dataclasses import dataclass, replace
from typing import Annotated

import typer

from eventproc._base.identity import Network
from eventproc._base.network import HttpProxy
from eventproc._command.access.hub import ENDPOINT_VARIABLE, HUB_VARIABLE, HubAccess, TransportName
from eventproc._command.access.storage import STORAGE_VARIABLE, StorageAccess


@dataclass(frozen=True, kw_only=True)
class StorageOptions:
    """How the storage account is reached."""

    storage_connection_string: Annotated[
        str,
        typer.Option(
            envvar=[STORAGE_VARIABLE, "AZURE_STORAGE_CONNECTION_STRING"],
            metavar="TEXT",
            help="The connection string of the storage account, for --store blob:CONTAINER and "
            "tables:TABLE. It is a secret: prefer the environment variable.",
        ),
    ] = ""
    storage_account: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_STORAGE_ACCOUNT",
            metavar="NAME",
            help="The storage account, instead of its connection string: its name or its URL. "
            "It is reached with the identity of this process (docs/identity.md), for which "
            "`pip install 'eventproc[identity]'` is needed.",
        ),
    ] = ""
    ca_bundle: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_CA_BUNDLE",
            metavar="FILE",
            help="The certificates to trust (PEM) in connections to Azure, instead of the usual "
            "ones.",
        ),
    ] = ""
    proxy: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_PROXY",
            metavar="http://HOST:PORT",
            help="The HTTP proxy for connections to Azure. The hub is then read over WebSockets. A "
            "user is given as http://USER:PASSWORD@HOST:PORT; with one, prefer the environment "
            "variable.",
        ),
    ] = ""

    def network(self) -> Network:
        """Return how Azure is reached."""
        return Network(
            ca_bundle=self.ca_bundle or None,
            proxy=HttpProxy.from_url(self.proxy) if self.proxy else None,
        )

    def storage_access(self) -> StorageAccess:
        """Return how the storage account is reached."""
        return StorageAccess(
            connection_string=self.storage_connection_string,
            account=self.storage_account,
            network=self.network(),
        )


@dataclass(frozen=True, kw_only=True)
class HubOptions(StorageOptions):
    """How the hub is reached, too."""

    connection_string: Annotated[
        str,
        typer.Option(
            envvar=HUB_VARIABLE,
            metavar="TEXT",
            help="The connection string of the Event Hubs namespace or hub. With the prefix "
            "kafka+, the hub is read through its Kafka endpoint. For a Kafka broker, "
            "kafka://HOST:PORT; for RabbitMQ's partition queues, "
            "amqp://USER:PASSWORD@HOST/?queues=COUNT. It is a secret: "
            "prefer the environment variable, because other users of the machine can see the "
            "arguments of a process.",
        ),
    ] = ""
    namespace: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_NAMESPACE",
            metavar="HOST",
            help="The Event Hubs namespace, for example contoso.servicebus.windows.net, instead of "
            "a connection string. It is reached with the identity of this process "
            "(docs/identity.md), for which `pip install 'eventproc[identity]'` is needed.",
        ),
    ] = ""
    custom_endpoint: Annotated[
        str,
        typer.Option(
            envvar=ENDPOINT_VARIABLE,
            metavar="sb://HOST[:PORT]",
            help="The address of a gateway or a private endpoint to connect to, instead of the "
            "namespace's own.",
        ),
    ] = ""
    transport: Annotated[
        TransportName,
        typer.Option(
            envvar="EVENTPROC_TRANSPORT",
            help="How Event Hubs are reached: amqp over TCP, port 5671; websocket, port 443; or, "
            "with --namespace, kafka, port 9093.",
        ),
    ] = TransportName.AMQP

    def storage_access(self) -> StorageAccess:
        """Return how the storage account is reached: by its name, in the cloud of the hub."""
        return replace(super().storage_access(), hub=self.namespace or self.connection_string)

    def hub_access(self) -> HubAccess:
        """Return how the hub is reached."""
        return HubAccess(
            connection_string=self.connection_string,
            namespace=self.namespace,
            custom_endpoint=self.custom_endpoint,
            transport=self.transport,
            network=self.network(),
        )
