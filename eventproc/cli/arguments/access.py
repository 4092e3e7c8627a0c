"""How the hub and the storage account are reached: with a key or an identity, and through what."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from eventproc.errors import ConfigurationError
from eventproc.identity import SharedCredential
from eventproc.network import HttpProxy

if TYPE_CHECKING:
    from eventproc.sources.eventhubs import EventHubOptions

HUB_VARIABLE: Final = "EVENTPROC_CONNECTION_STRING"
"""Environment variable: the connection string of the Event Hubs namespace or of one hub, or the
address of a Kafka broker."""

STORAGE_VARIABLE: Final = "EVENTPROC_STORAGE_CONNECTION_STRING"
"""Environment variable: the storage account's connection string."""

VARIABLES: Final = (
    HUB_VARIABLE,
    STORAGE_VARIABLE,
    "AZURE_STORAGE_CONNECTION_STRING",
    "EVENTPROC_NAMESPACE",
    "EVENTPROC_STORAGE_ACCOUNT",
    "EVENTPROC_CUSTOM_ENDPOINT",
    "EVENTPROC_TRANSPORT",
    "EVENTPROC_CA_BUNDLE",
    "EVENTPROC_PROXY",
)
"""Every environment variable that says how hub or storage account are reached."""

_ACCOUNT_NAME: Final = re.compile(r"[a-z0-9]{3,24}")

T = TypeVar("T")


class TransportName(StrEnum):
    """The transport below AMQP, by its option."""

    AMQP = "amqp"
    WEBSOCKET = "websocket"


@dataclass(frozen=True, kw_only=True)
class Network:
    """Certificates and proxy of every connection to Azure."""

    ca_bundle: str | None = None
    proxy: HttpProxy | None = None

    def credential(self) -> SharedCredential:
        """Return the identity of this process, the same one for hub and storage account.

        Raises:
            MissingExtraError: azure-identity is not installed.
        """
        return _credential(self)


@cache
def _credential(network: Network) -> SharedCredential:
    from eventproc.identity.default_credential import (  # noqa: PLC0415 - it is an extra
        default_credential,
    )

    return default_credential(ca_bundle=network.ca_bundle, http_proxy=network.proxy)


@dataclass(frozen=True, kw_only=True)
class HubAccess:
    """How the hub is reached; not which one it is."""

    connection_string: str = field(default="", repr=False)
    namespace: str = ""
    """The Event Hubs namespace, which is reached with the identity of this process."""

    custom_endpoint: str = ""
    transport: TransportName = TransportName.AMQP
    network: Network = Network()

    def check(self) -> None:
        """Raise ``ConfigurationError`` if both a key and an identity are given."""
        if self.connection_string and self.namespace:
            raise ConfigurationError(
                "give --namespace, which uses an identity, or the connection string "
                f"({HUB_VARIABLE}), which has a key; not both"
            )

    def options(self) -> "EventHubOptions":
        """Return how to connect to an event hub."""
        from eventproc.sources.eventhubs import (  # noqa: PLC0415 - it is an extra
            EventHubOptions,
            Transport,
        )

        return EventHubOptions(
            transport=Transport(self.transport.value),
            custom_endpoint=self.custom_endpoint or None,
            ca_bundle=self.network.ca_bundle,
            http_proxy=self.network.proxy,
        )

    def make(self, kind: Callable[..., T], eventhub: str | None) -> T:
        """Make an object of ``eventproc.sources.eventhubs`` that connects to the hub."""
        if self.namespace:
            if not eventhub:
                raise ConfigurationError("which event hub? Give --eventhub")
            credential = self.network.credential()
            return kind(self.namespace, eventhub, credential, options=self.options())
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


@dataclass(frozen=True, kw_only=True)
class StorageAccess:
    """How the storage account is reached."""

    connection_string: str = field(default="", repr=False)
    account: str = ""
    """The account's name, host or URL, reached with the identity of this process."""

    network: Network = Network()

    def make(self, kind: Callable[..., T], container: str, what: str, **settings: Any) -> T:  # noqa: ANN401
        """Make a store or a sink in a container; *what* is the option that needs it.

        Raises:
            ConfigurationError: The account is not given, or both with a key and an identity.
        """
        settings |= {"ca_bundle": self.network.ca_bundle, "http_proxy": self.network.proxy}
        if self.connection_string and self.account:
            raise ConfigurationError(
                "give --storage-account, which uses an identity, or the connection string "
                f"({STORAGE_VARIABLE} or AZURE_STORAGE_CONNECTION_STRING), which has a key; not "
                "both"
            )
        if self.account:
            return kind(self._url(), container, self.network.credential(), **settings)
        if not self.connection_string:
            raise ConfigurationError(
                f"{what} needs the storage account: set the environment variable "
                f"{STORAGE_VARIABLE} to its connection string, or give --storage-account to use an "
                "identity"
            )
        made: T = kind.from_connection_string(  # type: ignore[attr-defined]
            self.connection_string, container, **settings
        )
        return made

    def _url(self) -> str:
        account = self.account.rstrip("/")
        if account.startswith(("https://", "http://")):
            return account
        if _ACCOUNT_NAME.fullmatch(account):
            return f"https://{account}.blob.core.windows.net"
        if "." in account and "/" not in account:
            return f"https://{account}"
        raise ConfigurationError(
            f"--storage-account is {self.account!r}: give the account's name, for example contoso, "
            "or its URL, for example https://contoso.blob.core.windows.net"
        )
