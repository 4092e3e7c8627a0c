"""Where the demo happens: a folder, a store, an event hub, a page, and the processes that use them.

All files are in one temporary folder and all ports are free ones, so several demos can run on one
machine at the same time.
"""

import json
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from eventproc._command.arguments.access import (
    HUB_VARIABLE,
    STORAGE_VARIABLE,
    HubAccess,
    StorageAccess,
)
from eventproc._command.arguments.sources import make_source
from eventproc._command.arguments.stores import open_store
from eventproc._command.dashboard.options import PageOptions
from eventproc._command.demo.children import Child, Children
from eventproc._command.demo.flights import Logbook
from eventproc._command.demo.journal import JOURNAL_VARIABLE
from eventproc._command.group.connection import Connection
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore, EventSource
from eventproc.testing._azurite import Azurite

HUB: Final = "flights"
HANDLER: Final = "eventproc._command.demo.handler:FlightLog"
EMULATOR_START_S: Final = 30.0
INTERVAL_S: Final = 1
EXPIRATION_S: Final = 6
"""Not shorter, because blob storage gives the times of records in whole seconds."""


class StoreChoice(StrEnum):
    """Where the demo's group keeps its records."""

    AUTO = "auto"
    AZURITE = "azurite"
    SQLITE = "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoGroup:
    """The group of the demo, and what its processes use. ``open_group`` makes it."""

    children: Children
    spec: str
    """The store, as a value of ``--store``."""

    group: ConsumerGroup
    store: CheckpointStore
    source: EventSource
    partition_ids: Sequence[str]

    @property
    def is_sqlite(self) -> bool:
        """Whether the group is kept in SQLite, and not in Azurite."""
        return self.spec.startswith("sqlite:")

    def start_processor(self, name: str) -> Child:
        """Start a processor, by the command that a user would type."""
        options = (
            f"--owner-id {name} --interval {INTERVAL_S}s --expiration {EXPIRATION_S}s "
            "--checkpoint-interval 1s --shutdown-timeout 10s --log-format json --stop-at-eof"
        )
        command = ["-m", "eventproc", "run", HANDLER, "--store", self.spec]
        return self.children.start(name, [*command, *options.split()])

    def start_publisher(self, count: int, *, rate: int) -> Child:
        """Start the publisher: *count* flights, at *rate* flights a second."""
        command = ["-m", "eventproc._command.demo.publisher", str(count), str(rate)]
        return self.children.start("publisher", command)

    async def published(self) -> dict[str, range]:
        """Ask the hub for the sequence numbers of the events in each partition."""
        return {
            found.partition_id: range(
                found.beginning_sequence_number, found.last_enqueued_sequence_number + 1
            )
            for found in await self.source.properties_of(self.partition_ids)
            if not found.is_empty
        }

    async def stored_figures(self) -> dict[str, list[int]]:
        """Read the handlers' states, with the figures of each aircraft, from the checkpoints."""
        logbook = Logbook()
        for partition_id in self.partition_ids:
            checkpoint = await self.store.read_checkpoint(self.group, partition_id)
            if checkpoint is not None and checkpoint.state:
                logbook.take_in(checkpoint.state)
        return logbook.figures_by_aircraft


@asynccontextmanager
async def open_group(
    partition_count: int, choice: StoreChoice, say: Callable[[str], None]
) -> AsyncIterator[DemoGroup]:
    """Start store, hub and page; at the end of the block, end every process and remove the folder.

    Raises:
        ConfigurationError: Azurite is asked for, and is not installed or did not start.
        ChildFailedError: The emulator of the hub did not start.
    """
    async with AsyncExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="eventproc-demo-", ignore_cleanup_errors=True)
        children = Children(Path(stack.enter_context(folder)))
        storage = _start_azurite(stack, choice, say)
        spec = "blob:checkpoints" if storage else f"sqlite:{children.folder / 'group.db'}"
        children.environment |= {
            STORAGE_VARIABLE: storage,
            JOURNAL_VARIABLE: str(children.folder),
        }
        stack.callback(children.close)
        say("starting the Event Hubs emulator")
        hub = await _start_hub(children, partition_count)
        children.environment[HUB_VARIABLE] = hub
        source = make_source(HubAccess(connection_string=hub), HUB)
        store = open_store(spec, StorageAccess(storage_connection_string=storage), creates=True)
        for opened in (source, store):
            await stack.enter_async_context(opened)
        group = ConsumerGroup(
            fully_qualified_namespace=source.fully_qualified_namespace,
            eventhub_name=source.eventhub_name,
        )
        connection = Connection(group=group, store=store, source=source)
        url, _ = await stack.enter_async_context(_open_page(connection))
        say(f"a page shows the group: {url}")
        yield DemoGroup(
            children=children,
            spec=spec,
            group=group,
            store=store,
            source=source,
            partition_ids=[str(number) for number in range(partition_count)],
        )


def _open_page(connection: Connection) -> AbstractAsyncContextManager[tuple[str, object]]:
    """Serve the page of the dashboard within the block."""
    from eventproc._command.dashboard.program import open_page  # noqa: PLC0415 - an extra

    options = PageOptions(
        http="127.0.0.1:0",
        expiration=timedelta(seconds=EXPIRATION_S),
        every=timedelta(seconds=0.5),
    )
    return open_page(connection, options)


def _start_azurite(stack: AsyncExitStack, choice: StoreChoice, say: Callable[[str], None]) -> str:
    """Start Azurite; return its connection string, or an empty one if SQLite is to be used."""
    if choice is StoreChoice.SQLITE:
        return ""
    say("starting Azurite, the blob storage emulator")
    azurite = Azurite()
    stack.callback(azurite.stop)
    try:
        import checkpointstores.blob  # noqa: F401, PLC0415 - is it installed?

        azurite.start()  # It blocks this loop for a second: nothing else runs yet.
    except ConfigurationError as error:
        if choice is StoreChoice.AZURITE:
            raise
        say(f"no Azurite, so the group is kept in SQLite: {error}")
        return ""
    except RuntimeError as error:
        raise ConfigurationError(f"{error}; --store sqlite does not need Azurite") from error
    return azurite.connection_string


async def _start_hub(children: Children, partition_count: int) -> str:
    """Start the Event Hubs emulator; return the hub's connection string."""
    hub = f"{HUB}:{partition_count}"
    command = f"-m eventproc emulator --hub {hub} --port 0 --format json --stop-at-eof"
    line = await children.start("emulator", command.split()).first_line(EMULATOR_START_S)
    return f"{json.loads(line)['connection_string']}EntityPath={HUB}"
