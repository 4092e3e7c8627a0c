"""How the storage account is reached.

The environment variables of the options that say how hub and storage account are reached.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from eventproc._base.azure_storage.account import Service, account_url
from eventproc._base.identity import DIRECT, Network
from eventproc.errors import ConfigurationError

VARIABLES: Final = (
    "EVENTPROC_CONNECTION_STRING",
    "EVENTPROC_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_CONNECTION_STRING",
    "EVENTPROC_NAMESPACE",
    "EVENTPROC_STORAGE_ACCOUNT",
    "EVENTPROC_CUSTOM_ENDPOINT",
    "EVENTPROC_TRANSPORT",
    "EVENTPROC_CA_BUNDLE",
    "EVENTPROC_PROXY",
)
"""All of them."""


STORAGE_VARIABLE: Final = "EVENTPROC_STORAGE_CONNECTION_STRING"
"""Environment variable: the storage account's connection string."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StorageAccess:
    """How the storage account is reached."""

    connection_string: str = field(default="", repr=False)
    account: str = ""
    """The account's name, host or URL, reached with the identity of this process."""

    hub: str = field(default="", repr=False)
    """The namespace or the connection string of the hub, whose cloud is that of the account."""

    network: Network = DIRECT

    def make(
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
        settings |= {"ca_bundle": self.network.ca_bundle, "http_proxy": self.network.proxy}
        if self.connection_string and self.account:
            raise ConfigurationError(
                "give --storage-account, which uses an identity, or the connection string "
                f"({STORAGE_VARIABLE} or AZURE_STORAGE_CONNECTION_STRING), which has a key; not "
                "both"
            )
        if self.account:
            url = account_url(
                self.account, option="--storage-account", service=service, hub=self.hub
            )
            return kind(url, container, self.network.credential(), **settings)
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
