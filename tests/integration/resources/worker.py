"""A process that holds names and, while it does, sends the fencing token to a server.

Arguments: port of the server, the store (an SQLite file, or a container and the storage's
connection string after a blank), owner id, names, and settings as JSON: those of the
configuration, and ``kind`` (``async`` or ``blocking``). SIGTERM stops it, and the end of its input.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import threading
from datetime import timedelta

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    BlockingHeldResource,
    BlockingResourceHandler,
    CheckpointStore,
    HeldResource,
    LeaseMode,
    ResourceHandler,
    ResourceProcessor,
    ResourceProcessorConfig,
    Resources,
)
from tests.integration.resources.fence import (
    EXPIRATION,
    HOST,
    INTERVAL,
    PACE,
    REBALANCE,
    message,
)

PORT, STORE, OWNER_ID, NAMES, GIVEN = sys.argv[1:]
SETTINGS = json.loads(GIVEN)


class Sender(ResourceHandler):
    """Sends until it is cancelled; its end waits until the server has read everything."""

    async def hold(self, held: HeldResource) -> None:
        """Connect, and send a message every few milliseconds."""
        reader, writer = await asyncio.open_connection(HOST, int(PORT))
        try:
            while True:
                writer.write(message(held))
                await asyncio.sleep(PACE.total_seconds())
        finally:
            writer.write_eof()
            await reader.read()
            writer.close()


class BlockingSender(BlockingResourceHandler):
    """The same in a thread."""

    def hold(self, held: BlockingHeldResource) -> None:
        """Connect, and send a message every few milliseconds."""
        with socket.create_connection((HOST, int(PORT))) as connection:
            while not held.is_cancelled:
                connection.sendall(message(held))
                held.wait(PACE)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)


def make_store() -> CheckpointStore:
    """Return the store of the arguments."""
    container, _, conn_str = STORE.partition(" ")
    if conn_str:
        return BlobCheckpointStore.from_connection_string(
            conn_str, container=container, request_timeout=timedelta(seconds=1)
        )
    return SqliteCheckpointStore(STORE)


def end_with_input() -> None:
    """End the process when its parent has ended."""
    sys.stdin.read()
    os._exit(3)


async def main() -> None:
    """Hold names until SIGTERM."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    threading.Thread(target=end_with_input, daemon=True).start()
    processor = ResourceProcessor(
        resources=Resources(NAMES.split(",")),
        store=make_store(),
        group="fenced",
        handler=BlockingSender if SETTINGS["kind"] == "blocking" else Sender,
        owner_id=OWNER_ID,
        config=ResourceProcessorConfig(
            ownership_expiration=EXPIRATION,
            load_balancing_interval=INTERVAL,
            rebalance_interval=REBALANCE,
            shutdown_timeout=timedelta(seconds=10),
            lease_mode=LeaseMode[SETTINGS["lease_mode"]],
        ),
    )
    async with processor:
        print("ready", flush=True)
        await stopping.wait()


asyncio.run(main())
