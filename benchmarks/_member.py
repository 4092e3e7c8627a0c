"""One process of a group, with eventproc or with Azure's client, that reports what it does.

    python benchmarks/_member.py '{"side": "eventproc", ...}'

It imports everything, reports ``ready``, and starts at the first line on its standard input. Each
report is one line of JSON, written at once, so that what was handled before a kill is known.
"""

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final

from azure.eventhub import aio as azures_module
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore as AzureStore

from benchmarks._hub import SENT_AT
from benchmarks._storage_calls import counted
from checkpointstores.blob import BlobCheckpointStore
from eventproc import (
    CheckpointPolicy,
    CloseReason,
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.compat import BlobCheckpointStore as DropInStore
from eventproc.compat.azure_eventhub import aio as drop_in_module
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource

REPORT_EVERY_S: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a member; the same for both sides."""

    side: str
    hub: str
    """The connection string."""

    storage: str
    container: str
    interval_s: float
    expiration_s: float
    prefetch: int = 300
    batch: int = 300
    checkpoint_s: float = 5.0
    """How often each partition's progress is stored."""

    stores_at_close: bool = False
    """Whether the program on Azure's client stores its progress in ``on_partition_close``, too."""

    is_timed: bool = True
    """Whether events have the time at which they were sent; not in a backlog."""

    def as_text(self) -> str:
        """Return the settings as a command-line argument."""
        return json.dumps(asdict(self))


def report(kind: str, **what: object) -> None:
    """Write one line in one call."""
    line = {"kind": kind, "at": time.monotonic(), "cpu": time.process_time(), **what}
    os.write(1, json.dumps(line).encode() + b"\n")


def report_batch(
    partition_id: str, numbers: tuple[int, int], bodies: Sequence[bytes], *, is_timed: bool
) -> None:
    """Report a handled batch: its first and last number, and the age of each event."""
    now = time.monotonic()
    sent = [SENT_AT.unpack_from(body)[0] for body in bodies]
    ages = [round(1e3 * (now - sent_at), 2) for sent_at in sent] if is_timed else []
    report("batch", partition=partition_id, first=numbers[0], last=numbers[1], ages_ms=ages)


async def report_calls(sent: Mapping[str, int]) -> None:
    """Report the number of requests to storage from time to time."""
    while True:
        await asyncio.sleep(REPORT_EVERY_S)
        report("calls", sent=dict(sent))


# --- eventproc -----------------------------------------------------------------------------------


def handler_class(settings: Settings) -> type[PartitionHandler]:
    """Return a handler that reports."""

    class Reporting(PartitionHandler):
        async def initialize(self, context: PartitionContext) -> None:
            report("open", partition=context.partition_id)

        async def process_events(
            self, context: PartitionContext, events: Sequence[ReceivedEvent]
        ) -> None:
            numbers = events[0].sequence_number, events[-1].sequence_number
            bodies = [event.body for event in events]
            report_batch(context.partition_id, numbers, bodies, is_timed=settings.is_timed)

        async def close(self, context: PartitionContext, reason: CloseReason) -> None:
            report("close", partition=context.partition_id, reason=reason.name)

    return Reporting


async def serve_ours(settings: Settings, stopped: asyncio.Event) -> None:
    """Run a processor until *stopped* is set."""
    processor = EventProcessor(
        source=EventHubSource.from_connection_string(
            settings.hub, options=EventHubOptions(prefetch=settings.prefetch)
        ),
        store=BlobCheckpointStore.from_connection_string(settings.storage, settings.container),
        handler=handler_class(settings),
        config=EventProcessorConfig(
            checkpoint_policy=CheckpointPolicy(
                max_events=None, interval=timedelta(seconds=settings.checkpoint_s)
            ),
            batch_size_max=settings.batch,
            load_balancing_interval=timedelta(seconds=settings.interval_s),
            ownership_expiration=timedelta(seconds=settings.expiration_s),
        ),
    )
    async with processor:
        await stopped.wait()


# --- Azure's client ------------------------------------------------------------------------------


class Azures:
    """The callbacks of Azure's client, with a checkpoint policy, which it leaves to its users."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stored_at_s: dict[str, float] = {}

    async def on_batch(self, context: Any, events: list[Any]) -> None:  # noqa: ANN401
        """Report, and store a checkpoint if it is due."""
        if not events:
            return
        bodies = [b"".join(event.body) for event in events]
        numbers = events[0].sequence_number, events[-1].sequence_number
        report_batch(context.partition_id, numbers, bodies, is_timed=self._settings.is_timed)
        now_s = time.monotonic()
        last_s = self._stored_at_s.setdefault(context.partition_id, now_s)
        if now_s - last_s >= self._settings.checkpoint_s:
            self._stored_at_s[context.partition_id] = now_s
            await context.update_checkpoint(events[-1])

    async def on_open(self, context: Any) -> None:  # noqa: ANN401
        """Report."""
        report("open", partition=context.partition_id)

    async def on_close(self, context: Any, reason: Any) -> None:  # noqa: ANN401
        """Store the progress, if the settings say so, and report."""
        if self._settings.stores_at_close:
            await context.update_checkpoint()
        report("close", partition=context.partition_id, reason=reason.name)

    async def on_error(self, context: Any, error: Exception) -> None:  # noqa: ANN401
        """Report: a link taken by another owner arrives here."""
        report("error", partition=getattr(context, "partition_id", None), error=repr(error)[:200])


async def serve_azures(settings: Settings, stopped: asyncio.Event) -> None:
    """Run Azure's client, or ours of the same name, until *stopped* is set."""
    module: Any = azures_module
    store_class: Any = AzureStore
    if settings.side == "drop-in":
        module, store_class = drop_in_module, DropInStore
    store = store_class.from_connection_string(settings.storage, settings.container)
    client = module.EventHubConsumerClient.from_connection_string(
        settings.hub,
        "$Default",
        checkpoint_store=store,
        load_balancing_interval=settings.interval_s,
        partition_ownership_expiration_interval=settings.expiration_s,
    )
    azures = Azures(settings)
    receiving = asyncio.create_task(
        client.receive_batch(
            azures.on_batch,
            max_batch_size=settings.batch,
            prefetch=settings.prefetch,
            on_partition_initialize=azures.on_open,
            on_partition_close=azures.on_close,
            on_error=azures.on_error,
            starting_position="-1",
        )
    )
    await stopped.wait()
    # ``receive_batch`` sleeps for the rest of its interval now; do not wait for that.
    await client.close()
    receiving.cancel()


def end_with_parent() -> None:
    """End this process at the end of standard input, when its parent has ended."""
    sys.stdin.read()
    os._exit(1)


SIDES: Final = {"eventproc": serve_ours, "azure": serve_azures, "drop-in": serve_azures}


async def main(settings: Settings) -> None:
    """Serve until SIGTERM, then stop gracefully and report it."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    with counted() as sent:
        calls: Counter[str] = sent
        reporting = asyncio.create_task(report_calls(calls))
        await SIDES[settings.side](settings, stopped)
        reporting.cancel()
    report("stopped")
    os._exit(0)


if __name__ == "__main__":
    # Errors are in the reports; without this, the client would print them as well.
    logging.getLogger("azure").addHandler(logging.NullHandler())
    given = Settings(**json.loads(sys.argv[1]))
    report("ready")
    sys.stdin.readline()
    threading.Thread(target=end_with_parent, daemon=True).start()
    asyncio.run(main(given))
