"""The environment of a demo: an event hub, a store, and the processes that use them.

All files are in one temporary folder and all ports are free ones, so several demos can run on one
machine at the same time.
"""

import asyncio
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from eventproc.cli.arguments.sources import HUB_VARIABLE, make_source
from eventproc.cli.arguments.stores import STORAGE_VARIABLE, open_store
from eventproc.cli.demo.children import POLL_S, Child
from eventproc.cli.demo.flights import Logbook
from eventproc.cli.demo.journal import JOURNAL_VARIABLE
from eventproc.concurrency.resource import AsyncResource
from eventproc.concurrency.tasks import retrieve_outcome
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore, EventSource
from eventproc.testing.servers.azurite import Azurite, find_azurite

HUB: Final = "flights"
EMULATOR_START_S: Final = 30.0
HANDLER: Final = "eventproc.cli.demo.processors.handler:FlightLog"
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
    """Starts the hub, the store and the processes of a demo; an async context manager."""

    def __init__(
        self, *, partition_count: int, store: StoreChoice, print_line: Callable[[str], None]
    ) -> None:
        self.partition_ids = [str(number) for number in range(partition_count)]
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
        self.source: EventSource
        self.group: ConsumerGroup

    @property
    def elapsed_s(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._begun_s

    async def open(self) -> None:
        """Start the hub and the store."""
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
        # If this task is cancelled, Azurite must finish its start before it can be stopped.
        starting = asyncio.ensure_future(asyncio.to_thread(azurite.start))
        starting.add_done_callback(retrieve_outcome)
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            raise
        except RuntimeError as error:
            raise ConfigurationError(f"{error}; --store sqlite does not need Azurite") from error
        return azurite.connection_string

    async def _start_hub(self) -> str:
        self._print_line("starting the Event Hubs emulator")
        hub = f"{HUB}:{len(self.partition_ids)}"
        child = self.start(
            "emulator",
            f"-m eventproc.cli emulator --hub {hub} --port 0 --format json --stop-at-eof".split(),
        )
        waited_s = 0.0
        while not (output := child.output.read_text("utf-8")).endswith("\n"):
            child.check()
            if waited_s > EMULATOR_START_S:
                raise ConfigurationError(f"the emulator did not start in {EMULATOR_START_S:.0f} s")
            await asyncio.sleep(POLL_S)
            waited_s += POLL_S
        return str(json.loads(output)["connection_string"])

    def start(self, name: str, arguments: list[str]) -> Child:
        """Start a Python process that ends when this one does."""
        child = Child(name, arguments, folder=self.folder, env=self.environment)
        self.children.append(child)
        return child

    def start_processor(self, name: str) -> Child:
        """Start a processor, by the command that a user would type."""
        options = (
            f"--owner-id {name} --interval {INTERVAL_S}s --expiration {EXPIRATION_S}s "
            "--checkpoint-interval 1s --shutdown-timeout 10s --log-format json --stop-at-eof"
        )
        command = ["-m", "eventproc.cli", "run", HANDLER, "--store", self.note.spec]
        return self.start(name, [*command, *options.split()])

    def start_publisher(self, count: int, *, backlog: int, rate: float) -> Child:
        """Start the publisher: ``backlog`` events at once, the rest at ``rate`` events a second."""
        progress = str(self.folder / "published")
        return self.start(
            "publisher",
            ["-m", "eventproc.cli.demo.publisher", str(count), str(backlog), str(rate), progress],
        )

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

    def published(self) -> int:
        """Return how many events were published so far, by the publisher's count."""
        try:
            return int((self.folder / "published").read_text("ascii"))
        except FileNotFoundError:
            return 0

    async def positions(self) -> dict[str, int]:
        """Read the positions of the group's checkpoints, by partition id."""
        return {
            checkpoint.partition_id: checkpoint.sequence_number
            for checkpoint in await self.store.list_checkpoints(self.group)
            if checkpoint.sequence_number is not None
        }

    async def stored_logbook(self) -> Logbook:
        """Read the handlers' states from the checkpoints, and join them to one logbook."""
        logbook = Logbook()
        for partition_id in self.partition_ids:
            checkpoint = await self.store.read_checkpoint(self.group, partition_id)
            if checkpoint is not None and checkpoint.state:
                logbook.take_in(checkpoint.state)
        return logbook
