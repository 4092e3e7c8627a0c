"""Hubs with events of any enqueued time."""

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from pathlib import Path

from eventproc.emulator._amqp.message import draft_of
from eventproc.emulator._hub.log import PartitionLog
from eventproc.emulator._hub.persistence import PartitionFile, partition_path

_ONE_BYTE_OF_DATA = b"\x00\x53\x75\xa0\x01x"


def publish_at(directory: Path, hub: str, partition_id: str, instants: Iterable[datetime]) -> None:
    """Write an event for each instant into the log of a partition, before an emulator is
    started."""
    file, log = PartitionFile(partition_path(directory, hub, partition_id)), PartitionLog()
    file.load(0)
    draft = draft_of(_ONE_BYTE_OF_DATA)
    milliseconds = (round(instant.timestamp() * 1000) for instant in instants)
    for enqueued_ms, together in groupby(milliseconds):
        events = log.place([draft] * len(list(together)), enqueued_ms)
        log.append(events)
        file.append(events)
    file.close()
