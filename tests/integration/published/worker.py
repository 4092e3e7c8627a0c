"""A process that holds names by a published plan, and says which plans it follows and writes.

Arguments: the store (an SQLite file, or a container and the storage's connection string after a
blank), owner id, and a path: the process that is about to publish while there is a file
deletes it and suspends itself, until SIGCONT. SIGTERM stops it, and the end of its input.
"""

import asyncio
import json
import os
import signal
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    CheckpointStore,
    Even,
    HeldResource,
    Published,
    ResourceHandler,
    ResourceProcessor,
    ResourceProcessorConfig,
    Resources,
)
from eventproc._core.placement.published_plan import plan_in
from eventproc._group.balancer import Balancer, CycleResult
from eventproc.models import ConsumerGroup, GroupRecord, RecordResult
from eventproc.ports import ForwardingStore

NAMES: Final = ("a", "b", "c", "d", "e", "f", "g", "h")
GROUP: Final = "published"
EXPIRATION: Final = timedelta(seconds=4)


def make_store(text: str) -> CheckpointStore:
    """Return the store of an argument."""
    container, _, conn_str = text.partition(" ")
    if conn_str:
        return BlobCheckpointStore.from_connection_string(
            conn_str, container=container, request_timeout=timedelta(seconds=1)
        )
    return SqliteCheckpointStore(text)


def number_in(record: GroupRecord) -> int:
    """Return the number of the published plan in a record."""
    published = plan_in(record.content)
    assert published is not None
    return published.number


def say(what: str, value: object) -> None:
    """Print one line."""
    print(json.dumps([what, value]), flush=True)


def say_what_is_followed() -> None:
    """After each cycle, say the number of the published plan that this processor follows."""
    real = Balancer.cycle

    async def cycle(balancer: Balancer, *arguments: Any, **options: Any) -> CycleResult:
        done = await real(balancer, *arguments, **options)
        published = balancer._memory.group.published
        if published is not None:
            say("followed", published.number)
        return done

    Balancer.cycle = cycle  # type: ignore[assignment, method-assign]


def disarm(armed: Path) -> bool:
    """Delete the file; return whether this process did."""
    try:
        armed.unlink()
    except FileNotFoundError:
        return False
    return True


def suspend() -> None:
    """Suspend this process, all its threads."""
    # Sent to this thread, not to the process: then this thread does not run on until another
    # thread has taken the signal.
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


class SuspendingStore(ForwardingStore):
    """Suspends the process before a write of a group record, if it is armed."""

    def __init__(self, store: CheckpointStore, armed: Path) -> None:
        """Wrap a store."""
        super().__init__(store)
        self._armed = armed

    async def write_record(self, group: ConsumerGroup, record: GroupRecord) -> RecordResult:
        """Write the record; late, if the process was suspended."""
        if not disarm(self._armed):
            return await super().write_record(group, record)
        say("withheld", number_in(record))
        if isinstance(self.store, SqliteCheckpointStore):
            # In the store's thread, so between two transactions: a process that is suspended
            # inside of one keeps the file locked for all others.
            await self.store._in_thread(suspend)
        else:
            suspend()
        result = await super().write_record(group, record)
        say("late write", result.outcome.name)
        return result


class Idle(ResourceHandler):
    """Holds its names, and does nothing with them."""

    async def hold(self, held: HeldResource) -> None:
        """Wait for the cancellation."""
        await asyncio.Event().wait()


def end_with_input() -> None:
    """End the process when its parent has ended."""
    sys.stdin.read()
    os._exit(3)


async def main(store_text: str, owner_id: str, armed: str) -> None:
    """Hold names until SIGTERM."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    threading.Thread(target=end_with_input, daemon=True).start()
    say_what_is_followed()
    store = SuspendingStore(make_store(store_text), Path(armed))
    processor = ResourceProcessor(
        resources=Resources(NAMES),
        store=store,
        group=GROUP,
        handler=Idle,
        owner_id=owner_id,
        config=ResourceProcessorConfig(
            placement=Published(Even()),
            ownership_expiration=EXPIRATION,
            load_balancing_interval=timedelta(seconds=0.5),
            rebalance_interval=timedelta(seconds=0.2),
            shutdown_timeout=timedelta(seconds=10),
        ),
    )
    async with processor:
        await stopping.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
