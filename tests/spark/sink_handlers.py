"""Handlers and stores for Spark's Python workers, which find this file by their ``PYTHONPATH``.

Handlers append a line for each event to a ledger, in the folder that tests and workers share.
Other files in that folder say which call has to fail.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.models import (
    NOT_BEGUN,
    CheckpointResult,
    CheckpointUpdate,
    ConsumerGroup,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore

FOLDER = "EVENTPROC_TEST_FOLDER"
STORAGE = "EVENTPROC_TEST_SINK_STORAGE"
CONTAINER = "EVENTPROC_TEST_SINK_CONTAINER"

LATE = 150
"""Faults are injected from this event on: a query that reads 100 events of a partition in a batch
has committed one batch by then."""


def folder() -> Path:
    """Return the folder that tests and workers share."""
    return Path(os.environ[FOLDER])


def note(file_name: str, **line: Any) -> None:
    """Append a line in one write, so that lines of several processes stay whole."""
    with (folder() / file_name).open("ab", buffering=0) as file:
        file.write(json.dumps(line).encode() + b"\n")


def is_first(name: str) -> bool:
    """Return whether this is the first call since the test created the file that arms this
    fault."""
    try:
        (folder() / name).unlink()
    except FileNotFoundError:
        return False
    return True


def stall(name: str) -> None:
    """Block once, while the file ``stalled`` exists."""
    if not is_first(name):
        return
    stalled = folder() / "stalled"
    stalled.with_suffix(".new").write_text(str(os.getpid()))
    stalled.with_suffix(".new").rename(stalled)
    while stalled.exists():
        time.sleep(0.02)


class Orders(PartitionHandler):
    """Records each event, and keeps the sum of their bodies as its state."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Handle one event."""
        total = int(context.state or b"0") + int(event.body)
        context.state = str(total).encode()
        note(
            "ledger",
            partition=context.partition_id,
            number=event.sequence_number,
            total=total,
            is_replay=context.is_replay,
        )
        if event.sequence_number == LATE:
            if is_first("die-in-handler"):
                os.kill(os.getpid(), signal.SIGKILL)
            stall("stall-in-handler")


class Ranges(PartitionHandler):
    """Records the range of each call and its process, and counts events in its state."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle events, slowly enough to be killed meanwhile."""
        context.state = b"%d" % (int(context.state or b"0") + len(events))
        await asyncio.sleep(0.05)
        note(
            "ledger",
            partition=context.partition_id,
            first=events[0].sequence_number,
            last=events[-1].sequence_number,
            is_replay=context.is_replay,
            worker=os.getpid(),
        )


class Sizes(PartitionHandler):
    """Takes Arrow columns, and keeps the number of bytes as its state."""

    async def process_columns(self, context: PartitionContext, columns: Any) -> None:
        """Handle the rows of one Arrow batch."""
        size = sum(map(len, columns.column("body").to_pylist()))
        context.state = str(int(context.state or b"0") + size).encode()


class Totals(PartitionHandler):
    """Keeps the sum of a column that the query has computed."""

    async def process_columns(self, context: PartitionContext, columns: Any) -> None:
        """Handle the rows of one Arrow batch."""
        total = sum(columns.column("total").to_pylist())
        context.state = str(int(context.state or b"0") + total).encode()


class Faulty(CheckpointStore):
    """Kills its process or blocks where a test requests it, and records its writes."""

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Write, or fail as the test requested."""
        is_commit = update.isolation == NOT_BEGUN
        is_late = is_commit and update.sequence_number >= LATE
        if is_commit and is_first("die-before-commit"):
            os.kill(os.getpid(), signal.SIGKILL)
        if is_late:
            stall("stall-in-commit")
        result = await super().update_checkpoint(group, update)  # type: ignore[safe-super]
        if result.outcome is WriteOutcome.WON:
            note(
                "writes",
                partition=update.partition_id,
                number=update.sequence_number,
                is_commit=is_commit,
                writer=update.writer,
            )
        if is_commit and is_first("die-after-commit"):
            os.kill(os.getpid(), signal.SIGKILL)
        return result


class FaultySqlite(Faulty, SqliteCheckpointStore):
    """The same with a file on this machine."""


class FaultyBlob(Faulty, BlobCheckpointStore):
    """The same in blob storage."""


def store() -> FaultySqlite:
    """Return the store in the shared folder."""
    return FaultySqlite(folder() / "group.db")


def blob_store() -> BlobCheckpointStore:
    """Return the store in the container that the environment names."""
    return FaultyBlob.from_connection_string(os.environ[STORAGE], os.environ[CONTAINER])
