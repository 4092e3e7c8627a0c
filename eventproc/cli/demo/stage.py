"""What the demo plays on: an event hub, a store, and processes that work with them.

Everything lies in one temporary folder, everything listens on free ports of this machine, so any
number of demos can run beside each other.
"""

import asyncio
import json
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from eventproc.cli.demo.children import POLL_S, Child
from eventproc.cli.demo.journal import JOURNAL_VARIABLE
from eventproc.cli.extras import needing
from eventproc.cli.sources import HUB_VARIABLE, make_source
from eventproc.cli.stores import STORAGE_VARIABLE, open_store
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore, EventSource
from eventproc.testing.azurite import Azurite, find_azurite

HUB: Final = "flights"
EMULATOR_START_S: Final = 30.0
HANDLER: Final = "eventproc.cli.demo.handler:FlightLog"
SQLITE_FILE: Final = "group.db"
LOCK_WAIT_S: Final = 0.3
"""Longer than any write takes."""

INTERVAL_S: Final = 1
EXPIRATION_S: Final = 6
"""A record in blob storage tells its age in whole seconds, so shorter would be guesswork."""


class StoreChoice(StrEnum):
    """Where the demo's group keeps its records."""

    AUTO = "auto"
    AZURITE = "azurite"
    SQLITE = "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreNote:
    """Which store it became, for the report, and why not the other one."""

    name: str
    spec: str
    why: str = ""


class Stage:
    """Everything that the demo needs running, as an async context manager."""

    def __init__(
        self, *, partition_count: int, store: StoreChoice, tell: Callable[[str], None]
    ) -> None:
        self._partition_count = partition_count
        self._choice = store
        self._tell = tell
        self._stack = AsyncExitStack()
        self.environment: dict[str, str] = {}
        """What every process of the demo finds in its environment."""

        self.children: list[Child] = []
        self.folder: Path
        self.note: StoreNote
        self.store: CheckpointStore
        self.source: EventSource
        self.group: ConsumerGroup

    async def __aenter__(self) -> Self:
        """Start the hub and the store."""
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End every process and remove the folder."""
        await self._stack.aclose()

    async def _open(self) -> None:
        made = tempfile.TemporaryDirectory(prefix="eventproc-demo-", ignore_cleanup_errors=True)
        self._stack.callback(made.cleanup)
        self.folder = Path(made.name)
        self.note, connection_string = await self._start_store()
        self._stack.callback(self._end_children)
        hub = await self._start_hub()
        self.environment = {
            HUB_VARIABLE: f"{hub}EntityPath={HUB}",
            STORAGE_VARIABLE: connection_string,
            JOURNAL_VARIABLE: str(self.folder),
        }
        self.store = open_store(
            self.note.spec, storage_connection_string=connection_string, create_container=True
        )
        await self._stack.enter_async_context(self.store)
        self.source = make_source(self.environment[HUB_VARIABLE], HUB)
        await self._stack.enter_async_context(self.source)
        self.group = ConsumerGroup(
            fully_qualified_namespace=self.source.fully_qualified_namespace,
            eventhub_name=self.source.eventhub_name,
        )

    def _end_children(self) -> None:
        for child in self.children:
            child.close()

    async def _start_store(self) -> tuple[StoreNote, str]:
        sqlite = f"sqlite:{self.folder / SQLITE_FILE}"
        if self._choice is StoreChoice.SQLITE:
            return StoreNote(name="SQLite", spec=sqlite), ""
        try:
            find_azurite()
            with needing("blob"):
                import checkpointstores.blob  # noqa: F401, PLC0415 - asks whether it is there
        except ConfigurationError as error:
            if self._choice is StoreChoice.AZURITE:
                raise
            return StoreNote(name="SQLite", spec=sqlite, why=str(error)), ""
        self._tell("starting Azurite, the blob storage emulator")
        azurite = Azurite()
        self._stack.callback(azurite.stop)
        # To its end even when we are interrupted: only then there is something to stop.
        starting = asyncio.ensure_future(asyncio.to_thread(azurite.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            raise
        except RuntimeError as error:
            if self._choice is StoreChoice.AZURITE:
                raise ConfigurationError(f"{error}; --store sqlite does without it") from error
            return StoreNote(name="SQLite", spec=sqlite, why=str(error)), ""
        note = StoreNote(name="Azurite (Azure Blob Storage)", spec="blob:checkpoints")
        return note, azurite.connection_string

    async def _start_hub(self) -> str:
        self._tell("starting the Event Hubs emulator")
        hub = f"{HUB}:{self._partition_count}"
        child = self.start(
            "emulator",
            f"-m eventproc.cli emulator --hub {hub} --port 0 --format json --stop-at-eof".split(),
        )
        waited_s = 0.0
        while not (said := child.output.read_text("utf-8")).endswith("\n"):
            child.check()
            if waited_s > EMULATOR_START_S:
                raise ConfigurationError(f"the emulator did not start in {EMULATOR_START_S:.0f} s")
            await asyncio.sleep(POLL_S)
            waited_s += POLL_S
        return str(json.loads(said)["connection_string"])

    def start(self, name: str, arguments: list[str]) -> Child:
        """Start a process that ends with us."""
        child = Child(name, arguments, folder=self.folder, env=self.environment)
        self.children.append(child)
        return child

    def start_processor(self, name: str) -> Child:
        """Start a processor: the command that a user would type."""
        options = (
            f"--owner-id {name} --interval {INTERVAL_S}s --expiration {EXPIRATION_S}s "
            "--checkpoint-interval 1s --shutdown-timeout 10s --log-format json --stop-at-eof"
        )
        command = ["-m", "eventproc.cli", "run", HANDLER, "--store", self.note.spec]
        return self.start(name, [*command, *options.split()])

    def start_publisher(self, count: int, *, backlog: int, rate: float) -> Child:
        """Start the publisher: ``backlog`` events at once, the rest at ``rate`` a second."""
        progress = str(self.folder / "published")
        return self.start(
            "publisher",
            ["-m", "eventproc.cli.demo.publisher", str(count), str(backlog), str(rate), progress],
        )

    def is_file_locked(self) -> bool:
        """Whether a process is in the middle of a write to the SQLite file.

        One that is frozen there keeps all others from writing until it goes on or is killed:
        that is how SQLite's locks are. Blob storage knows no such thing.
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

    def published(self) -> int:
        """How many events the hub has taken so far, by the publisher's count."""
        try:
            return int((self.folder / "published").read_text("ascii"))
        except FileNotFoundError:
            return 0
