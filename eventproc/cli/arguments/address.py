"""The options that name a consumer group: its hub, its store, and how to reach both."""

from dataclasses import dataclass
from typing import Annotated

import typer

from eventproc.cli.arguments.sources import HUB_VARIABLE, make_source
from eventproc.cli.arguments.stores import STORAGE_VARIABLE, open_store
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
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
            "machine), blob:CONTAINER (Azure Blob Storage), or postgres:NAME (PostgreSQL; NAME is "
            "the environment variable that has the connection string). Add ?namespace=HOST to "
            "blob:CONTAINER to share the group with processors that write the namespace without "
            "its port, ?schema=NAME to postgres:NAME for tables in another schema than "
            "'eventproc'.",
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

    def checkpoint_store(
        self, *, creates: bool = False, must_exist: bool = False
    ) -> CheckpointStore:
        """Make the store, without opening it; the arguments are those of ``open_store``."""
        return open_store(
            self.store,
            storage_connection_string=self.storage_connection_string,
            creates=creates,
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

    def source(self) -> EventSource | None:
        """Make the source, without connecting it."""
        return make_source(self.connection_string, self.eventhub)

    def group(self) -> ConsumerGroup:
        """Return the group, without connecting to anything."""
        source = self.source()
        assert source is not None, "it is only missing if the names are given"
        return ConsumerGroup(
            fully_qualified_namespace=source.fully_qualified_namespace,
            eventhub_name=source.eventhub_name,
            name=self.consumer_group,
        )


@dataclass(frozen=True, kw_only=True)
class GroupAddress(HubAddress):
    """A group that can be named without a connection string. Then its hub is not asked."""

    namespace: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_NAMESPACE",
            metavar="HOST",
            help="The Event Hubs namespace, for example contoso.servicebus.windows.net. Not needed "
            "with --connection-string.",
        ),
    ] = ""

    def source(self) -> EventSource | None:
        """Make the source, without connecting it; ``None`` without a connection string."""
        return super().source() if self.connection_string else None

    def group(self) -> ConsumerGroup:
        """Return the group, without connecting to anything.

        Raises:
            ConfigurationError: There is no connection string, and a name is missing.
        """
        found = super().group() if self.connection_string else self._named_group()
        if found.is_of_resources:
            raise ConfigurationError(
                f"group {found.name!r} shares named resources, which have no checkpoints: "
                f"`eventproc status --resources {found.name}` shows what it has"
            )
        return found

    def _named_group(self) -> ConsumerGroup:
        if not self.namespace:
            raise ConfigurationError(
                "which Event Hubs namespace? Give --namespace, or set the environment variable "
                f"{HUB_VARIABLE} to its connection string, which also shows the lag"
            )
        if not self.eventhub:
            raise ConfigurationError("which event hub? Give --eventhub")
        return ConsumerGroup(
            fully_qualified_namespace=self.namespace,
            eventhub_name=self.eventhub,
            name=self.consumer_group,
        )


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
