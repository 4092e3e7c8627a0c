"""How to make a source or a store on any machine of the cluster.

Rule: what crosses a process boundary is a recipe: a frozen value that can be pickled. A
connection never does.
"""

import importlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventproc.errors import ConfigurationError
from eventproc.ports import CheckpointStore, EventSource
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource
from spark_integration.secrets import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecipe:
    """A connection string, or a function that makes the source."""

    connection: Secret | None = None
    eventhub_name: str | None = None
    function: str | None = None
    """``module:function``, importable on the driver and the executors. It takes the
    ``EventHubOptions`` to use and returns an ``EventSource``, or any async context manager that
    gives an open one (so that a credential can be closed behind it)."""

    def __post_init__(self) -> None:
        """Refuse two ways, and none."""
        if (self.connection is None) == (self.function is None):
            raise ConfigurationError(
                "which event hub? Give the option connectionString (env:NAME, file:PATH, or the "
                "string itself) or sourceRecipe (module:function), and only one of them"
            )

    def make(self, options: EventHubOptions) -> AbstractAsyncContextManager[EventSource]:
        """Make the source; nothing is connected yet.

        Raises:
            ConfigurationError: it cannot be made here.
        """
        if self.function is not None:
            return load("sourceRecipe", self.function)(options)  # type: ignore[no-any-return]
        assert self.connection is not None
        return EventHubSource.from_connection_string(
            self.connection.read(), eventhub_name=self.eventhub_name, options=options
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecipe:
    """``sqlite:PATH``, ``blob:CONTAINER``, or ``module:function``."""

    spec: str
    storage: Secret | None = None
    """The storage account's connection string, for ``blob``."""

    def __post_init__(self) -> None:
        """Refuse what names no store."""
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

    def make(self) -> AbstractAsyncContextManager[CheckpointStore]:
        """Make the store; nothing is opened yet.

        Raises:
            ConfigurationError: it cannot be made here.
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
        ConfigurationError: there is none; the message names the option.
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
        raise ConfigurationError(f"{option} is {path!r}, and there is no such function")
    return found  # type: ignore[no-any-return]
