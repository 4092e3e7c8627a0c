"""Where a demo happens: a folder, a store, and the processes that use them.

All files are in one temporary folder and all ports are free ones, so several demos can run on one
machine at the same time.
"""

import asyncio
import sqlite3
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from eventproc.cli.access.storage import STORAGE_VARIABLE, StorageAccess
from eventproc.cli.arguments.stores import open_store
from eventproc.cli.demo.children import Child
from eventproc.cli.demo.journal import JOURNAL_VARIABLE
from eventproc.concurrency.resource import AsyncResource
from eventproc.concurrency.tasks import retrieve_outcome
from eventproc.errors import ConfigurationError
from eventproc.ports import CheckpointStore
from eventproc.testing.azurite import Azurite, find_azurite

SQLITE_FILE: Final = "group.db"
LOCK_WAIT_S: Final = 0.3
"""How long to wait for the lock of SQLite's file; a write takes less."""

INTERVAL_S: Final = 1
EXPIRATION_S: Final = 6
"""Not shorter, because blob storage gives the times of records in whole seconds."""


class StoreChoice(StrEnum):
    """Where the demo's group keeps its records."""

    AUTO = "auto"
    AZURITE = "azurite"
    SQLITE = "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreInfo:
    """The store of a demo."""

    name: str
    spec: str
    """A value of ``--store``."""


class Stage(AsyncResource):
    """Starts the store of a demo, and what its events come from; an async context manager."""

    def __init__(self, *, store: StoreChoice, print_line: Callable[[str], None]) -> None:
        self._choice = store
        self._print_line = print_line
        self._stack = AsyncExitStack()
        self._begun_s = time.monotonic()
        self.environment: dict[str, str] = {}
        """Environment variables of the demo's processes."""

        self.children: list[Child] = []
        self.folder: Path
        self.note: StoreInfo
        self.store: CheckpointStore

    @property
    def elapsed_s(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._begun_s

    async def open(self) -> None:
        """Start everything."""
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End every process and remove the folder."""
        await self._stack.aclose()

    async def _open(self) -> None:
        made = tempfile.TemporaryDirectory(prefix="eventproc-demo-", ignore_cleanup_errors=True)
        self._stack.callback(made.cleanup)
        self.folder = Path(made.name)
        self.note, connection_string = await self._start_store()
        self._print_line(f"the group's records are kept in {self.note.name}")
        self.environment = {
            STORAGE_VARIABLE: connection_string,
            JOURNAL_VARIABLE: str(self.folder),
        }
        self._stack.callback(self._end_children)
        await self._start_source()
        self.store = open_store(
            self.note.spec, StorageAccess(connection_string=connection_string), creates=True
        )
        await self._stack.enter_async_context(self.store)

    @abstractmethod
    async def _start_source(self) -> None:
        """Start what events come from, and add to the environment how it is reached."""

    def _end_children(self) -> None:
        for child in self.children:
            child.close()

    async def _finish_start(self, start: Callable[[], None]) -> None:
        """Run a blocking start; if this task is cancelled, it finishes before it can be undone."""
        starting = asyncio.ensure_future(asyncio.to_thread(start))
        starting.add_done_callback(retrieve_outcome)
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            raise

    async def _start_store(self) -> tuple[StoreInfo, str]:
        """Start the store; return it and the storage account's connection string, if any."""
        if self._choice is not StoreChoice.SQLITE:
            try:
                connection_string = await self._start_azurite()
            except ConfigurationError as error:
                if self._choice is StoreChoice.AZURITE:
                    raise
                self._print_line(f"no Azurite, so the group is kept in SQLite: {error}")
            else:
                note = StoreInfo(name="Azurite (Azure Blob Storage)", spec="blob:checkpoints")
                return note, connection_string
        return StoreInfo(name="SQLite", spec=f"sqlite:{self.folder / SQLITE_FILE}"), ""

    async def _start_azurite(self) -> str:
        """Start Azurite, and return its connection string.

        Raises:
            ConfigurationError: It is not installed, or did not start.
        """
        find_azurite()
        import checkpointstores.blob  # noqa: F401, PLC0415 - is it installed?

        self._print_line("starting Azurite, the blob storage emulator")
        azurite = Azurite()
        self._stack.callback(azurite.stop)
        try:
            await self._finish_start(azurite.start)
        except RuntimeError as error:
            raise ConfigurationError(f"{error}; --store sqlite does not need Azurite") from error
        return azurite.connection_string

    def start(self, name: str, arguments: list[str]) -> Child:
        """Start a Python process that ends when this one does."""
        child = Child(name, arguments, folder=self.folder, env=self.environment)
        self.children.append(child)
        return child

    def published(self) -> int:
        """Return how many events were published so far, by the publisher's count."""
        try:
            return int((self.folder / "published").read_text("ascii"))
        except FileNotFoundError:
            return 0

    def is_file_locked(self) -> bool:
        """Whether a process is writing to the SQLite file.

        A process that is frozen during a write keeps the lock, and blocks all others until it
        continues or is killed. This cannot happen with blob storage.
        """
        path = self.folder / SQLITE_FILE
        if not path.exists():
            return False
        with closing(sqlite3.connect(path, timeout=LOCK_WAIT_S, isolation_level=None)) as file:
            try:
                file.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            file.execute("ROLLBACK")
            return False
