"""Recipes: picklable descriptions from which any machine of the cluster makes a source or a store.

Rule: only recipes cross process boundaries, never connections.
"""

import importlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from eventproc.errors import ConfigurationError
from eventproc.ports import CheckpointStore, EventSource
from eventproc.settings import SECRET, check_settings
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource
from spark_integration.secrets import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecipe:
    """Makes a source from a connection string, or by a function."""

    connection: Annotated[Secret | None, SECRET] = None
    eventhub_name: str | None = None
    function: str | None = None
    """``module:function``, importable on the driver and the executors. It takes the
    ``EventHubOptions`` to use and returns an ``EventSource``, or any async context manager that
    yields an open one (which can close a credential afterwards)."""

    def __post_init__(self) -> None:
        """Check that exactly one way is given."""
        check_settings(self)
        if (self.connection is None) == (self.function is None):
            raise ConfigurationError(
                "which event hub? Give the option connectionString (env:NAME, file:PATH, or the "
                "string itself) or sourceRecipe (module:function), and only one of them"
            )
        if self.function is not None and self.eventhub_name is not None:
            raise ConfigurationError(
                f"eventHubName has no effect beside sourceRecipe={self.function}, which names the "
                "event hub itself: remove it"
            )

    def make(self, options: EventHubOptions) -> AbstractAsyncContextManager[EventSource]:
        """Make the source, without connecting it.

        Raises:
            ConfigurationError: the secret or the function does not exist on this machine.
        """
        if self.function is not None:
            return load("sourceRecipe", self.function)(options)  # type: ignore[no-any-return]
        assert self.connection is not None
        return EventHubSource.from_connection_string(
            self.connection.read(), eventhub_name=self.eventhub_name, options=options
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecipe:
    """Makes a checkpoint store from ``sqlite:PATH``, ``blob:CONTAINER``, or ``module:function``."""

    spec: str
    storage: Annotated[Secret | None, SECRET] = None
    """The storage account's connection string, for ``blob``."""

    def __post_init__(self) -> None:
        """Check that the two fields name one store."""
        check_settings(self)
        kind, _, place = self.spec.partition(":")
        if not kind or not place:
            raise ConfigurationError(
                f"checkpointStore is {self.spec!r}: give sqlite:PATH, blob:CONTAINER or "
                "module:function"
            )
        if kind == "blob" and self.storage is None:
            raise ConfigurationError(
                f"checkpointStore is {self.spec!r}, which needs the option storageConnectionString "
                "(env:NAME, file:PATH, or the string itself)"
            )
        if kind != "blob" and self.storage is not None:
            raise ConfigurationError(
                f"storageConnectionString has no effect on checkpointStore={self.spec}: remove it, "
                "or give blob:CONTAINER"
            )

    def make(self) -> AbstractAsyncContextManager[CheckpointStore]:
        """Make the store, without opening it.

        Raises:
            ConfigurationError: the secret or the function does not exist on this machine.
        """
        kind, _, place = self.spec.partition(":")
        if kind == "sqlite":
            from checkpointstores.sqlite import SqliteCheckpointStore  # noqa: PLC0415 - one is used

            return SqliteCheckpointStore(Path(place))
        if kind == "blob":
            from checkpointstores.blob import BlobCheckpointStore  # noqa: PLC0415 - it is an extra

            assert self.storage is not None
            return BlobCheckpointStore.from_connection_string(self.storage.read(), place)
        return load("checkpointStore", self.spec)()  # type: ignore[no-any-return]


def load(option: str, path: str) -> Callable[..., Any]:
    """Import the function that ``module:function`` names.

    Raises:
        ConfigurationError: it does not exist here; the message names the option.
    """
    module_name, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except ImportError as error:
        raise ConfigurationError(
            f"{option} is {path!r}, and module {module_name!r} cannot be imported here: {error}. "
            "Install it on the driver and on every executor"
        ) from error
    if not callable(found):
        raise ConfigurationError(f"{option} is {path!r}, but the module has no such function")
    return found  # type: ignore[no-any-return]
