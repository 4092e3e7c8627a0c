"""The stage of the demos whose events come from an event hub."""

import asyncio
import json
from collections.abc import Callable
from typing import Final

from eventproc.cli.access.hub import HUB_VARIABLE, HubAccess
from eventproc.cli.arguments.sources import make_source
from eventproc.cli.demo.children import POLL_S, Child
from eventproc.cli.demo.flights import Logbook
from eventproc.cli.demo.stage import EXPIRATION_S, INTERVAL_S, Stage, StoreChoice
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from eventproc.ports import EventSource

HUB: Final = "flights"
EMULATOR_START_S: Final = 30.0
HANDLER: Final = "eventproc.cli.demo.processors.handler:FlightLog"


class HubStage(Stage):
    """Starts an event hub beside the store."""

    def __init__(
        self, *, partition_count: int, store: StoreChoice, print_line: Callable[[str], None]
    ) -> None:
        super().__init__(store=store, print_line=print_line)
        self.partition_ids = [str(number) for number in range(partition_count)]
        self.source: EventSource
        self.group: ConsumerGroup

    async def _start_source(self) -> None:
        hub = await self._start_hub()
        access = HubAccess(connection_string=f"{hub}EntityPath={HUB}")
        self.environment[HUB_VARIABLE] = access.connection_string
        self.source = make_source(access, HUB)
        await self._stack.enter_async_context(self.source)
        self.group = ConsumerGroup(
            fully_qualified_namespace=self.source.fully_qualified_namespace,
            eventhub_name=self.source.eventhub_name,
        )

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
