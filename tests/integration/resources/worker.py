"""A process that holds names and, while it does, sends the fencing token to a server.

Arguments: port of the server, the store (an SQLite file, or a container and the storage's
connection string after a blank), owner id, names, a file for the journal, and settings as JSON:
those of the configuration, and ``kind`` (``async`` or ``blocking``). SIGTERM stops it. It ends
with the process that started it, also if it is frozen.
"""

import asyncio
import ctypes
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    BlockingHeldResource,
    BlockingResourceHandler,
    CheckpointStore,
    HeldResource,
    ResourceHandler,
    ResourceProcessor,
    ResourceProcessorConfig,
    Resources,
)
from eventproc.ports import ForwardingStore
from tests.integration.resources.fence import (
    EXPIRATION,
    HOST,
    INTERVAL,
    PACE,
    REBALANCE,
    message,
)
from tests.integration.resources.journal import JournalWriter

P = ParamSpec("P")
T = TypeVar("T")

PR_SET_PDEATHSIG = 1
WATCH_S = 0.02
STARVED_MIN_S, STARVED_MAX_S = 0.02, 1.0
PORT, STORE, OWNER_ID, NAMES, JOURNAL, GIVEN = sys.argv[1:]
SETTINGS = json.loads(GIVEN)
journal = JournalWriter(JOURNAL)


class Sender(ResourceHandler):
    """Sends until it is cancelled; its end waits until the server has read everything."""

    async def hold(self, held: HeldResource) -> None:
        """Connect, and send a message every few milliseconds."""
        journal.began(held.name, held.epoch)
        reader, writer = await asyncio.open_connection(HOST, int(PORT))
        try:
            while True:
                writer.write(message(held))
                await asyncio.sleep(PACE.total_seconds())
        finally:
            ending_s = time.monotonic()
            writer.write_eof()
            await reader.read()
            writer.close()
            journal.ended(held.name, held.epoch, ending_s)


class BlockingSender(BlockingResourceHandler):
    """The same in a thread, careless: it checks, works for a moment, and sends."""

    def hold(self, held: BlockingHeldResource) -> None:
        """Connect, and send a message every few milliseconds."""
        journal.began(held.name, held.epoch)
        with socket.create_connection((HOST, int(PORT))) as connection:
            while not held.is_cancelled:
                time.sleep(PACE.total_seconds())
                connection.sendall(message(held))
            ending_s = time.monotonic()
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
        journal.ended(held.name, held.epoch, ending_s)


class TimedStore(ForwardingStore):
    """Notes how long each request took."""

    async def forward(
        self,
        method: Callable[Concatenate[Any, P], Awaitable[T]],
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call the wrapped store."""
        asked_s = time.monotonic()
        try:
            return await super().forward(method, *args, **options)
        finally:
            journal.answered(method.__name__, asked_s)


def watch_machine() -> None:
    """Note when this thread, which does nothing else, got no CPU time. Freezes are longer."""
    while True:
        due_s = time.monotonic() + WATCH_S
        time.sleep(WATCH_S)
        if STARVED_MIN_S < time.monotonic() - due_s < STARVED_MAX_S:
            journal.starved(due_s)


def make_store() -> CheckpointStore:
    """Return the store of the arguments."""
    container, _, conn_str = STORE.partition(" ")
    if conn_str:
        return BlobCheckpointStore.from_connection_string(
            conn_str, container=container, request_timeout=timedelta(seconds=1)
        )
    return SqliteCheckpointStore(STORE)


def end_with_parent() -> None:
    """End with the process that started this one. The kernel kills it even if it is frozen."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_with_input, daemon=True).start()


def _end_with_input() -> None:
    """End when the pipe closes: for other systems, and for a parent that had ended before."""
    sys.stdin.read()
    os._exit(3)


async def main() -> None:
    """Hold names until SIGTERM."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    processor = ResourceProcessor(
        resources=Resources(NAMES.split(",")),
        store=TimedStore(make_store()),
        group="fenced",
        handler=BlockingSender if SETTINGS["kind"] == "blocking" else Sender,
        owner_id=OWNER_ID,
        config=ResourceProcessorConfig(
            ownership_expiration=EXPIRATION,
            load_balancing_interval=INTERVAL,
            rebalance_interval=REBALANCE,
            shutdown_timeout=timedelta(seconds=10),
        ),
    )
    async with processor:
        print("ready", flush=True)
        await stopping.wait()


end_with_parent()
threading.Thread(target=watch_machine, daemon=True).start()
asyncio.run(main())
