"""How the hub and the storage account are reached: with a key or an identity, and through what.

The fields are the options of a command line.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from eventproc._base.azure_storage.account import Service, account_url
from eventproc._base.identity import Network
from eventproc._base.network import HttpProxy
from eventproc._base.secrets import read_secret
from eventproc.errors import ConfigurationError

if TYPE_CHECKING:
    from eventproc.sources.eventhubs import EventHubOptions

HUB_VARIABLE: Final = "EVENTPROC_CONNECTION_STRING"
"""Environment variable: the connection string of the Event Hubs namespace or of one hub, or the
address of a Kafka broker."""

ENDPOINT_VARIABLE: Final = "EVENTPROC_CUSTOM_ENDPOINT"
"""Environment variable: the address to connect to instead of the namespace's own."""

STORAGE_VARIABLE: Final = "EVENTPROC_STORAGE_CONNECTION_STRING"
"""Environment variable: the storage account's connection string."""

KAFKA_ENDPOINT: Final = "kafka+"
"""Prefix of an Event Hubs connection string: use the Kafka endpoint instead of AMQP."""

T = TypeVar("T")


def secret_of_option(parameter: typer.CallbackParam, value: str) -> str:
    """Return the secret for the value of an option or of its variable, which may be ``file:PATH``.

    Raises:
        ConfigurationError: The file has no secret.
    """
    try:
        return read_secret(value)
    except ConfigurationError as error:
        variables = parameter.envvar or ()
        shown = variables if isinstance(variables, str) else " or ".join(variables)
        raise ConfigurationError(error.message, setting=f"{parameter.opts[0]} ({shown})") from error


def secret_in_variable(what: str, name: str) -> str:
    """Return the secret for the value of a variable, which may be ``file:PATH``.

    *what* names the variable; it may itself be a secret that was mistaken for a name.

    Raises:
        ConfigurationError: It is no name of a variable, or there is no secret.
    """
    if not name.isidentifier():
        raise ConfigurationError(
            f"{what}: give the name of an environment variable, such as ORDERS_DSN, and put the "
            "connection string there: it is a secret, and other users of the machine can see the "
            "arguments of a process"
        )
    try:
        return read_secret(f"env:{name}")
    except ConfigurationError as error:
        raise ConfigurationError(f"{what}: {error.message}") from error


class TransportName(StrEnum):
    """How Event Hubs are reached, by its option."""

    AMQP = "amqp"
    WEBSOCKET = "websocket"
    KAFKA = "kafka"


@dataclass(frozen=True, kw_only=True)
class StorageAccess:
    """How the storage account is reached."""

    storage_connection_string: Annotated[
        str,
        typer.Option(
            envvar=[STORAGE_VARIABLE, "AZURE_STORAGE_CONNECTION_STRING"],
            metavar="TEXT",
            callback=secret_of_option,
            help="The connection string of the storage account, for --store blob:CONTAINER and "
            "tables:TABLE, or file:PATH. It is a secret: prefer the environment variable or a "
            "file.",
        ),
    ] = field(default="", repr=False)
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
            callback=secret_of_option,
            help="The HTTP proxy for connections to Azure. The hub is then read over WebSockets. A "
            "user is given as http://USER:PASSWORD@HOST:PORT; with one, prefer the environment "
            "variable, or file:PATH.",
        ),
    ] = field(default="", repr=False)

    def network(self) -> Network:
        """Return how Azure is reached."""
        return Network(
            ca_bundle=self.ca_bundle or None,
            proxy=HttpProxy.from_url(self.proxy) if self.proxy else None,
        )

    @property
    def cloud(self) -> str:
        """The namespace or the connection string of a hub in the same cloud as the account."""
        return ""

    def in_account(
        self,
        kind: Callable[..., T],
        container: str,
        what: str,
        service: Service = "blob",
        /,
        **settings: Any,  # noqa: ANN401
    ) -> T:
        """Make a store or a sink in a container or table; *what* is the option that needs it.

        Raises:
            ConfigurationError: The account is not given, or both with a key and an identity.
        """
        network = self.network()
        settings |= {"ca_bundle": network.ca_bundle, "http_proxy": network.proxy}
        if self.storage_connection_string and self.storage_account:
            raise ConfigurationError(
                "give --storage-account, which uses an identity, or the connection string "
                f"({STORAGE_VARIABLE} or AZURE_STORAGE_CONNECTION_STRING), which has a key; not "
                "both"
            )
        if self.storage_account:
            url = account_url(
                self.storage_account, option="--storage-account", service=service, hub=self.cloud
            )
            return kind(url, container, network.credential(), **settings)
        if not self.storage_connection_string:
            raise ConfigurationError(
                f"{what} needs the storage account: set the environment variable "
                f"{STORAGE_VARIABLE} to its connection string, or give --storage-account to use an "
                "identity"
            )
        made: T = kind.from_connection_string(  # type: ignore[attr-defined]
            self.storage_connection_string, container, **settings
        )
        return made


@dataclass(frozen=True, kw_only=True)
class HubAccess(StorageAccess):
    """How the hub is reached, too; not which one it is."""

    connection_string: Annotated[
        str,
        typer.Option(
            envvar=HUB_VARIABLE,
            metavar="TEXT",
            callback=secret_of_option,
            help="The connection string of the Event Hubs namespace or hub. With the prefix "
            "kafka+, the hub is read through its Kafka endpoint. For a Kafka broker, "
            "kafka://HOST:PORT; for RabbitMQ's partition queues, "
            "amqp://USER:PASSWORD@HOST/?queues=COUNT; or file:PATH. It is a secret: "
            "prefer the environment variable or a file, because other users of the machine can see "
            "the arguments of a process.",
        ),
    ] = field(default="", repr=False)
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

    @property
    def cloud(self) -> str:
        """The hub's namespace or connection string: the account is in the same cloud."""
        return self.namespace or self.connection_string

    def check(self) -> None:
        """Raise ``ConfigurationError`` if both a key and an identity are given."""
        if self.connection_string and self.namespace:
            raise ConfigurationError(
                "give --namespace, which uses an identity, or the connection string "
                f"({HUB_VARIABLE}), which has a key; not both"
            )

    @property
    def is_kafka_with_identity(self) -> bool:
        """Whether the namespace is reached through its Kafka endpoint, with an identity."""
        return bool(self.namespace) and self.transport is TransportName.KAFKA

    def over_kafka(self, make: Callable[..., T], eventhub: str) -> T:
        """Make a source or a publisher of an event hub by its ``with_identity``.

        Raises:
            ConfigurationError: An option is missing, or has no effect over Kafka.
        """
        network = self.network()
        if not eventhub:
            raise ConfigurationError("which event hub? Give --eventhub")
        if network.proxy is not None:
            raise ConfigurationError(
                "--proxy is not possible with --transport kafka: give --transport websocket"
            )
        bundle = network.ca_bundle
        return make(
            self.namespace,
            eventhub,
            network.credential(),
            bootstrap_servers=self.custom_endpoint.removeprefix("sb://").rstrip("/") or None,
            config={"ssl.ca.location": bundle} if bundle else None,
        )

    def without_kafka(self) -> "HubAccess":
        """Return how the hub is reached over AMQP, which sinks of dead letters use."""
        access = replace(
            self, connection_string=self.connection_string.removeprefix(KAFKA_ENDPOINT)
        )
        if self.transport is TransportName.KAFKA:
            return replace(access, transport=TransportName.AMQP, custom_endpoint="")
        return access

    def options(self) -> "EventHubOptions":
        """Return how to connect to an event hub over AMQP."""
        from eventproc.sources.eventhubs import EventHubOptions, Transport  # noqa: PLC0415 - it is an extra

        network = self.network()
        return EventHubOptions(
            transport=Transport(self.transport.value),
            custom_endpoint=self.custom_endpoint or None,
            ca_bundle=network.ca_bundle,
            http_proxy=network.proxy,
        )

    def over_amqp(self, kind: Callable[..., T], eventhub: str | None) -> T:
        """Make an object of ``eventproc.sources.eventhubs`` that connects to the hub."""
        if self.namespace:
            if not eventhub:
                raise ConfigurationError("which event hub? Give --eventhub")
            credential = self.network().credential()
            return kind(self.namespace, eventhub, credential, options=self.options())
        if self.transport is TransportName.KAFKA:
            raise ConfigurationError(
                "--transport kafka needs --namespace; for a connection string put kafka+ before it"
            )
        made: T = kind.from_connection_string(  # type: ignore[attr-defined]
            self.connection_string, eventhub_name=eventhub, options=self.options()
        )
        return made

    def refuse_event_hubs_options(self) -> None:
        """Raise ``ConfigurationError`` if an option is given that only Event Hubs over AMQP has."""
        if self.custom_endpoint or self.transport is not TransportName.AMQP:
            name = "--custom-endpoint" if self.custom_endpoint else "--transport"
            raise ConfigurationError(
                f"{name} is only for Event Hubs over AMQP: remove it; settings of a Kafka or "
                "RabbitMQ broker follow a question mark in its address"
            )
