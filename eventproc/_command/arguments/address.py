"""The options that name a consumer group: its hub, its store, and how to reach both."""

from dataclasses import dataclass
from typing import Annotated

import typer

from eventproc._command.arguments.access import HubAccess, StorageAccess
from eventproc._command.arguments.capture import with_capture
from eventproc._command.arguments.sources import make_source
from eventproc._command.arguments.stores import open_store
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore, EventSource


@dataclass(frozen=True, kw_only=True)
class StoreAddress(StorageAccess):
    """A store, and how to reach it."""

    store: Annotated[
        str,
        typer.Option(
            "--store",
            envvar="EVENTPROC_STORE",
            metavar="STORE",
            help="Where the group keeps ownership records and checkpoints: sqlite:PATH (one "
            "machine), blob:CONTAINER (Azure Blob Storage), tables:TABLE (Azure Table Storage), or "
            "postgres:NAME (PostgreSQL; NAME is "
            "the environment variable that has the connection string). Add ?namespace=HOST to "
            "blob:CONTAINER to share the group with processors that write the namespace without "
            "its port, ?names=exact to share it with those of the SDKs for Go and Rust, and "
            "?schema=NAME to postgres:NAME for tables in another schema than 'eventproc'.",
        ),
    ]

    def checkpoint_store(
        self, *, creates: bool = False, must_exist: bool = False
    ) -> CheckpointStore:
        """Make the store, without opening it; the arguments are those of ``open_store``."""
        return open_store(self.store, self, creates=creates, must_exist=must_exist)


@dataclass(frozen=True, kw_only=True)
class HubAndStore(HubAccess, StoreAddress):
    """A hub and a store, and how to reach both."""

    eventhub: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_EVENTHUB",
            metavar="NAME",
            help="The event hub, the Kafka topic, or the prefix of RabbitMQ's partition queues. "
            "Not needed if the connection string has EntityPath=NAME.",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True)
class HubAddress(HubAndStore):
    """A group whose hub is asked, too."""

    consumer_group: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_CONSUMER_GROUP",
            metavar="NAME",
            help="The consumer group. Processors of one consumer group share its partitions.",
        ),
    ] = "$Default"
    capture: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_CAPTURE",
            metavar="FILES",
            help="Read events that the hub has deleted from its Capture files: blob:CONTAINER, or "
            "folder:PATH with copies. Settings may follow a question mark: format=NAMES as in the "
            "settings of Capture, since=TIME, lost=skip (docs/capture.md).",
        ),
    ] = ""

    def source(self) -> EventSource | None:
        """Make the source, without connecting it."""
        live = make_source(self, self.eventhub)
        return with_capture(live, self.capture, self) if self.capture else live

    def group(self) -> ConsumerGroup:
        """Return the group, without connecting to anything."""
        namespace, eventhub = self.namespace, self.eventhub
        if self.connection_string or not namespace:
            source = make_source(self, eventhub)
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
    """A consumer group, or a group of resources."""

    resources: Annotated[
        str,
        typer.Option(
            metavar="GROUP",
            help="Show a group of named resources, as given to `eventproc hold --group`, instead "
            "of a consumer group.",
        ),
    ] = ""

    def source(self) -> EventSource | None:
        """Make the source, without connecting it; ``None`` if there is none to ask."""
        return None if self.resources else super().source()

    def group(self) -> ConsumerGroup:
        """Return the group, without connecting to anything."""
        return ConsumerGroup.of_resources(self.resources) if self.resources else super().group()
