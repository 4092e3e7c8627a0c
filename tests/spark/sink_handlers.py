"""Handlers and stores for Spark's Python workers, which find this file by their ``PYTHONPATH``.

What handlers do stands in a ledger, in the folder that tests and workers share; files there also
tell who is to break. A line of the ledger is one event.
"""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.models import CheckpointResult, CheckpointUpdate, ConsumerGroup

FOLDER = "EVENTPROC_TEST_FOLDER"


def folder() -> Path:
    """Return the folder that test and worker share."""
    return Path(os.environ[FOLDER])


def note(**line: Any) -> None:
    """Append to the ledger in one write, so that lines of several processes stay whole."""
    with (folder() / "ledger").open("ab", buffering=0) as file:
        file.write(json.dumps(line).encode() + b"\n")


def is_first(name: str) -> bool:
    """Whether nobody has come to this point before; a test makes the file to arm it."""
    try:
        (folder() / name).unlink()
    except FileNotFoundError:
        return False
    return True


class Orders(PartitionHandler):
    """Notes each event, and keeps their sum as its state."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Handle one event."""
        total = int(context.state or b"0") + int(event.body)
        context.state = str(total).encode()
        note(
            partition=context.partition_id,
            number=event.sequence_number,
            total=total,
            is_replay=context.is_replay,
        )
        if event.sequence_number == 150 and is_first("die-in-handler"):
            os.kill(os.getpid(), signal.SIGKILL)


class Sizes(PartitionHandler):
    """Takes columns, and keeps the number of bytes as its state."""

    async def process_columns(self, context: PartitionContext, columns: Any) -> None:
        """Handle the rows of a partition that came together."""
        size = sum(map(len, columns.column("body").to_pylist()))
        context.state = str(int(context.state or b"0") + size).encode()


def store() -> SqliteCheckpointStore:
    """Make the store that breaks in commits."""
    return FaultyStore(folder() / "group.db")


class FaultyStore(SqliteCheckpointStore):
    """Dies or freezes where a test says so."""

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Write, unless something happens."""
        is_commit = update.delivery_count == 0
        if is_commit and is_first("die-before-commit"):
            os.kill(os.getpid(), signal.SIGKILL)
        if is_commit and is_first("freeze-in-commit"):
            (folder() / "frozen").touch()
            while (folder() / "frozen").exists():
                time.sleep(0.02)  # noqa: ASYNC251 - frozen is frozen
        result = await super().update_checkpoint(group, update)
        if is_commit and is_first("die-after-commit"):
            os.kill(os.getpid(), signal.SIGKILL)
        return result
