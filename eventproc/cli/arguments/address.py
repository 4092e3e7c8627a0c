"""The options that name a consumer group: its hub, its store, and how to reach both."""

from dataclasses import dataclass
from typing import Annotated

import typer

from eventproc.cli.access.hub import HUB_VARIABLE, HubAccess, TransportName
from eventproc.cli.access.network import Network
from eventproc.cli.access.storage import STORAGE_VARIABLE, StorageAccess
from eventproc.cli.arguments.sources import make_source
from eventproc.cli.arguments.stores import open_store
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from eventproc.network import HttpProxy
from eventproc.ports import CheckpointStore, EventSource
from eventproc.resources.names import id_of


@dataclass(frozen=True, kw_only=True)
class StoreAddress:
    """A store, and how to reach it."""

    store: Annotated[
        str,
        typer.Option(
            "--store",
            envvar="EVENTPROC_STORE",
            metavar="STORE",
            help="Where the group keeps ownership records and checkpoints: sqlite:PATH (one "
            "machine) or blob:CONTAINER (Azure Blob Storage). Add ?namespace=HOST to "
            "blob:CONTAINER to share the group with processors that write the namespace without "
            "its port.",
        ),
    ]
    storage_connection_string: Annotated[
        str,
        typer.Option(
            envvar=[STORAGE_VARIABLE, "AZURE_STORAGE_CONNECTION_STRING"],
            metavar="TEXT",
            help="The connection string of the storage account, for --store blob:CONTAINER. It is "
            "a secret: prefer the environment variable.",
        ),
    ] = ""
    storage_account: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_STORAGE_ACCOUNT",
            metavar="NAME",
            help="The storage account, instead of its connection string: its name or its URL. "
            "It is reached with the identity of this process (docs/identity.md). Needs the extra "
            "identity.",
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

    def checkpoint_store(
        self, *, create_container: bool = False, must_exist: bool = False
    ) -> CheckpointStore:
        """Make the store, without opening it; the arguments are those of ``open_store``."""
        return open_store(
            self.store,
            self.storage_access(),
            create_container=create_container,
            must_exist=must_exist,
        )


@dataclass(frozen=True, kw_only=True)
class HubAddress(StoreAddress):
    """A group whose hub is asked, too."""

    eventhub: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_EVENTHUB",
            metavar="NAME",
            help="The event hub, the Kafka topic, RabbitMQ's super stream, or the prefix of its "
            "partition queues. Not needed if the connection string has EntityPath=NAME.",
        ),
    ] = ""
    consumer_group: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_CONSUMER_GROUP",
            metavar="NAME",
            help="The consumer group. Processors of one consumer group share its partitions.",
        ),
    ] = "$Default"
    connection_string: Annotated[
        str,
        typer.Option(
            envvar=HUB_VARIABLE,
            metavar="TEXT",
            help="The connection string of the Event Hubs namespace or hub. With the prefix "
            "kafka+, the hub is read through its Kafka endpoint. For a Kafka broker, "
            "kafka://HOST:PORT; for RabbitMQ's streams, rabbitmq-stream://USER:PASSWORD@HOST, and "
            "for its partition queues, amqp://USER:PASSWORD@HOST/?queues=COUNT. It is a secret: "
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
            "(docs/identity.md). Needs the extra identity.",
        ),
    ] = ""
    custom_endpoint: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_CUSTOM_ENDPOINT",
            metavar="sb://HOST[:PORT]",
            help="The address of a gateway or a private endpoint to connect to, instead of the "
            "namespace's own.",
        ),
    ] = ""
    transport: Annotated[
        TransportName,
        typer.Option(
            envvar="EVENTPROC_TRANSPORT",
            help="How Event Hubs are reached: amqp over TCP, port 5671, or websocket, port 443.",
        ),
    ] = TransportName.AMQP

    def hub_access(self) -> HubAccess:
        """Return how the hub is reached."""
        return HubAccess(
            connection_string=self.connection_string,
            namespace=self.namespace,
            custom_endpoint=self.custom_endpoint,
            transport=self.transport,
            network=self.network(),
        )

    def source(self) -> EventSource | None:
        """Make the source, without connecting it."""
        return make_source(self.hub_access(), self.eventhub)

    def group(self) -> ConsumerGroup:
        """Return the group, without connecting to anything."""
        namespace, eventhub = self.namespace, self.eventhub
        if self.connection_string or not namespace:
            source = make_source(self.hub_access(), eventhub)
            namespace, eventhub = source.fully_qualified_namespace, source.eventhub_name
        if not eventhub:
            raise ConfigurationError("which event hub? Give --eventhub")
        return ConsumerGroup(
            fully_qualified_namespace=namespace, eventhub_name=eventhub, name=self.consumer_group
        )


@dataclass(frozen=True, kw_only=True)
class GroupAddress(HubAddress):
    """A group whose hub need not be asked."""

    without_hub: Annotated[
        bool,
        typer.Option(
            "--without-hub",
            help="Do not connect to the hub, only to the store. Then --namespace and --eventhub "
            "only name the group: no credential for the hub is needed.",
        ),
    ] = False

    def source(self) -> EventSource | None:
        """Make the source, without connecting it; ``None`` if the hub is not to be asked."""
        return None if self.without_hub else super().source()

    def group(self) -> ConsumerGroup:
        """Return the group, without connecting to anything.

        Raises:
            ConfigurationError: A name is missing, or the group has no checkpoints.
        """
        found = super().group()
        if found.is_of_resources:
            raise ConfigurationError(
                f"group {found.name!r} shares named resources, which have no checkpoints: "
                f"`eventproc status --resources {found.name}` shows what it has"
            )
        return found


@dataclass(frozen=True, kw_only=True)
class ShownAddress(GroupAddress):
    """A consumer group, a group of resources, or the members that want one lease."""

    resources: Annotated[
        str,
        typer.Option(
            metavar="GROUP",
            help="Show a group of named resources, as given to `eventproc hold --group`, instead "
            "of a consumer group.",
        ),
    ] = ""

    lease: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Show which process of the group has this lease, and which ones wait for it: the "
            "name as given to `processor.lease`.",
        ),
    ] = ""

    def source(self) -> EventSource | None:
        """Make the source, without connecting it; ``None`` if there is none to ask."""
        return None if self.resources or self.lease else super().source()

    def group(self) -> ConsumerGroup:
        """Return the group, without connecting to anything."""
        found = ConsumerGroup.of_resources(self.resources) if self.resources else super().group()
        return found.for_lease(id_of(self.lease)) if self.lease else found
