"""Recipes: picklable descriptions from which any machine of the cluster makes a source or a store.

Rule: only recipes cross process boundaries, never connections.
"""

import importlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from eventproc._base.azure_storage.account import Service, account_url
from eventproc._base.identity import Network
from eventproc._base.network import HttpProxy
from eventproc._base.settings import SECRET, check_settings
from eventproc.errors import ConfigurationError
from eventproc.ports import CheckpointStore, EventSource
from eventproc.sources._connection_string import check_namespace
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource, Transport
from spark_integration._option_names import naming_recipes
from spark_integration._secrets import Secret

if TYPE_CHECKING:
    from checkpointstores.blob import BlobCheckpointStore
    from checkpointstores.tables import TableCheckpointStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRecipe:
    """Certificates and proxy of the connections to Azure."""

    __module__ = "spark_integration"

    ca_bundle: str | None = None
    """A file with the certificates to trust, on the driver and every executor."""

    proxy: Annotated[Secret | None, SECRET] = None
    """``http://USER:PASSWORD@HOST:PORT``, or a reference to it."""

    def __post_init__(self) -> None:
        """Check the proxy, unless it is a reference, which is resolved where it is used."""
        check_settings(self)
        if self.proxy is not None and not self.proxy.is_reference:
            with naming_recipes():
                HttpProxy.from_url(self.proxy.read())


def network_of(recipe: NetworkRecipe) -> Network:
    """Return the network settings, with secrets resolved on this machine.

    Raises:
        ConfigurationError: the secret does not exist on this machine, or names no proxy.
    """
    proxy = None if recipe.proxy is None else HttpProxy.from_url(recipe.proxy.read())
    return Network(ca_bundle=recipe.ca_bundle, proxy=proxy)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRecipe:
    """How a hub is reached, but for its credential."""

    network: NetworkRecipe = field(default_factory=NetworkRecipe)
    transport: Transport = Transport.AMQP
    custom_endpoint: str | None = None

    def make(self, **settings: Any) -> EventHubOptions:  # noqa: ANN401 - of EventHubOptions
        """Return the options of a connection, with these other settings.

        Raises:
            ConfigurationError: this machine does not have the proxy's secret.
        """
        network = network_of(self.network)
        return EventHubOptions(
            transport=self.transport,
            custom_endpoint=self.custom_endpoint,
            ca_bundle=network.ca_bundle,
            http_proxy=network.proxy,
            **settings,
        )


def at_hub(
    kind: Callable[..., T],
    connection: Secret | None,
    namespace: str | None,
    eventhub_name: str | None,
    options: EventHubOptions,
) -> T:
    """Make a source or a publisher of an event hub, by a connection string or with an identity.

    Raises:
        ConfigurationError: this machine does not have the secret, or it is invalid.
        MissingExtraError: azure-identity is not installed on this machine.
    """
    if connection is None:
        credential = Network(ca_bundle=options.ca_bundle, proxy=options.http_proxy).credential()
        return kind(namespace, eventhub_name, credential, options=options)
    made: T = kind.from_connection_string(  # type: ignore[attr-defined]
        connection.read(), eventhub_name=eventhub_name, options=options
    )
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecipe:
    """Makes a source with a connection string, with an identity, or by a function."""

    __module__ = "spark_integration"

    connection: Annotated[Secret | None, SECRET] = None
    namespace: str | None = None
    """The namespace's host, reached with the identity of the process that connects."""

    eventhub_name: str | None = None
    function: str | None = None
    """``module:function``, importable on the driver and the executors. It takes the
    ``EventHubOptions`` to use and returns an ``EventSource``, or any async context manager that
    yields an open one (which can close a credential afterwards)."""

    def __post_init__(self) -> None:
        """Check that exactly one of connection, namespace and function is given."""
        check_settings(self)
        refuse_key_and_identity(self.connection, self.namespace)
        given = {
            "SourceRecipe.connection": self.connection,
            "SourceRecipe.namespace": self.namespace,
            "SourceRecipe.function": self.function,
        }
        if list(given.values()).count(None) != 2:  # noqa: PLR2004 - of 3
            raise ConfigurationError(
                "which event hub? Give one of the three: a connection string (env:NAME, file:PATH, "
                "or the string itself), a namespace (to use an identity) or module:function",
                beside={
                    name: "not given" if value is None else "given" for name, value in given.items()
                },
            )
        if self.namespace is not None and not self.eventhub_name:
            raise ConfigurationError(
                "give the name of the event hub, too",
                setting="SourceRecipe.namespace",
                value=repr(self.namespace),
                beside={"SourceRecipe.eventhub_name": "not given"},
            )
        if self.namespace is not None:
            with naming_recipes():
                check_namespace(self.namespace)
        if self.function is not None and self.eventhub_name is not None:
            raise ConfigurationError(
                "the function names the event hub itself: remove the first",
                setting="SourceRecipe.eventhub_name",
                value=repr(self.eventhub_name),
                beside={"SourceRecipe.function": repr(self.function)},
            )

    def make(self, options: EventHubOptions) -> AbstractAsyncContextManager[EventSource]:
        """Make the source, without connecting it.

        Raises:
            ConfigurationError: the secret or the function does not exist on this machine.
            MissingExtraError: azure-identity is not installed on it.
        """
        if self.function is not None:
            return load("SourceRecipe.function", self.function)(options)  # type: ignore[no-any-return]
        return at_hub(EventHubSource, self.connection, self.namespace, self.eventhub_name, options)


OF_STORAGE_ACCOUNT: Final = frozenset({"blob", "tables"})
"""Kinds of stores that are in a storage account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecipe:
    """Makes a checkpoint store.

    *spec* is one of ``sqlite:PATH``, ``blob:CONTAINER``, ``tables:TABLE``, ``postgres:NAME`` and
    ``module:function``. ``NAME`` is the environment variable that has the connection string, on
    the driver and on every executor.
    """

    __module__ = "spark_integration"

    spec: str
    storage: Annotated[Secret | None, SECRET] = None
    """The storage account's connection string, for ``blob`` and ``tables``."""

    account: str | None = None
    """The storage account's name or URL, to use the identity of the process instead of a key."""

    network: NetworkRecipe = field(default_factory=NetworkRecipe)
    """How the storage account is reached."""

    def __post_init__(self) -> None:
        """Check that the fields name one store."""
        check_settings(self)
        kind, _, place = self.spec.partition(":")
        if not kind or not place:
            raise ConfigurationError(
                "give sqlite:PATH, blob:CONTAINER, tables:TABLE, postgres:NAME or module:function",
                setting="StoreRecipe.spec",
                value=repr(self.spec),
            )
        if kind == "postgresql" or (kind == "postgres" and not place.isidentifier()):
            raise ConfigurationError(  # It may have a password, so it is not quoted.
                "give the name of an environment variable, such as postgres:ORDERS_DSN, and set "
                "it to the connection string on the driver and on every executor",
                setting="StoreRecipe.spec",
                value="a postgres store",
            )
        if self.storage is not None and self.account is not None:
            raise ConfigurationError(
                "give the first, which uses an identity, or the second, which has a key; not both",
                setting="StoreRecipe.account",
                value="given",
                beside={"StoreRecipe.storage": "given"},
            )
        if kind not in OF_STORAGE_ACCOUNT:
            self._refuse_options_of_storage_account()
        elif self.account is not None:
            account_url(self.account, option="StoreRecipe.account")
        elif self.storage is None:
            raise ConfigurationError(
                "give the connection string of the storage account (env:NAME, file:PATH, or the "
                "string itself), or the account's name to use an identity",
                setting="StoreRecipe.spec",
                value=repr(self.spec),
                beside={
                    "StoreRecipe.storage": "not given",
                    "StoreRecipe.account": "not given",
                },
            )

    def _refuse_options_of_storage_account(self) -> None:
        values = {
            "StoreRecipe.storage": self.storage,
            "StoreRecipe.account": self.account,
            "ca_bundle": self.network.ca_bundle,
            "proxy": self.network.proxy,
        }
        for name, value in values.items():
            if value is not None:
                raise ConfigurationError(
                    "the first has no effect on such a store: remove it, or give blob:CONTAINER or "
                    "tables:TABLE",
                    setting=name,
                    value="given",
                    beside={"StoreRecipe.spec": repr(self.spec)},
                )

    def make(self) -> AbstractAsyncContextManager[CheckpointStore]:
        """Make the store, without opening it.

        Raises:
            ConfigurationError: the secret or the function does not exist on this machine.
            MissingExtraError: a package that it needs is not installed on it.
        """
        kind, _, place = self.spec.partition(":")
        if kind == "sqlite":
            from checkpointstores.sqlite import SqliteCheckpointStore  # noqa: PLC0415 - one is used

            return SqliteCheckpointStore(Path(place))
        if kind == "blob":
            from checkpointstores.blob import BlobCheckpointStore  # noqa: PLC0415 - it is an extra

            return self._in_storage_account(BlobCheckpointStore, place, "blob")
        if kind == "tables":
            from checkpointstores.tables import TableCheckpointStore  # noqa: PLC0415 - an extra

            return self._in_storage_account(TableCheckpointStore, place, "table")
        if kind == "postgres":
            from checkpointstores.postgres import PostgresCheckpointStore  # noqa: PLC0415 - an extra

            return PostgresCheckpointStore(Secret(f"env:{place}").read())
        try:
            make = load("StoreRecipe.spec", self.spec)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{error.message}. A store is sqlite:PATH, blob:CONTAINER, tables:TABLE, "
                "postgres:NAME or module:function",
                setting=error.setting,
                value=error.value,
            ) from error
        return make()  # type: ignore[no-any-return]

    def _in_storage_account(
        self,
        store: type["BlobCheckpointStore | TableCheckpointStore"],
        place: str,
        service: Service,
    ) -> "BlobCheckpointStore | TableCheckpointStore":
        network = network_of(self.network)
        settings: dict[str, Any] = {"ca_bundle": network.ca_bundle, "http_proxy": network.proxy}
        if self.account is not None:
            url = account_url(self.account, option="StoreRecipe.account", service=service)
            return store(url, place, network.credential(), **settings)
        assert self.storage is not None
        return store.from_connection_string(self.storage.read(), place, **settings)


def refuse_key_and_identity(connection: Secret | None, namespace: str | None) -> None:
    """Raise ``ConfigurationError`` if a hub is given both with a key and with an identity."""
    if connection is not None and namespace is not None:
        raise ConfigurationError(
            "give the first, which uses an identity, or the second, which has a key; not both",
            setting="SourceRecipe.namespace",
            value="given",
            beside={"SourceRecipe.connection": "given"},
        )


def load(option: str, path: str) -> Callable[..., Any]:
    """Import the function that ``module:function`` names.

    Raises:
        ConfigurationError: it does not exist here; the message names the option.
    """
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigurationError(
            f"module {module_name!r} cannot be imported here: {error}. Install it on the driver "
            "and on every executor",
            setting=option,
            value=repr(path),
        ) from error
    found = getattr(module, name, None)
    if not callable(found):
        own = [n for n, o in vars(module).items() if callable(o) and o.__module__ == module_name]
        raise ConfigurationError(
            f"module {module_name!r} has no function or class {name!r}; it has "
            f"{', '.join(own) or 'none'}",
            setting=option,
            value=repr(path),
        )
    return found  # type: ignore[no-any-return]
