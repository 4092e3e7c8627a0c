"""Windows whose file could not be written."""

import asyncio
from pathlib import Path
from typing import Any

import fastavro

from eventproc.emulator import CaptureConfiguration, EmulatorConfiguration, hubs_of
from eventproc.emulator._amqp.message import EventDraft
from eventproc.emulator._capture import CaptureWriter
from eventproc.emulator._hub.hub import Namespace, system_clock

DRAFT = EventDraft(b"", b"", 0, b"\x00\x53\x75\xa0\x01x", None)
"""An event of one section."""


def numbers_in(folder: Path) -> list[int]:
    """Return the sequence numbers in all files, in the order of their names."""
    found: list[int] = []
    for path in sorted(folder.rglob("*.avro")):
        with path.open("rb") as file:
            records: Any = fastavro.reader(file)
            found += [record["SequenceNumber"] for record in records]
    return found


def test_events_whose_file_could_not_be_written_are_in_the_next_one(tmp_path):
    """Together with later ones: a disk may be full for a while."""
    folder = tmp_path / "captured"
    capture = CaptureConfiguration(folder=folder)
    configuration = EmulatorConfiguration(hubs=hubs_of({"orders": 1}), capture=capture)
    namespace = Namespace(configuration)
    writer = CaptureWriter(capture, namespace, "127.0.0.1", system_clock)
    partition = namespace.hub("orders").partitions[0]

    partition.publish([DRAFT])
    folder.touch()  # A file in its place: nothing can be written into it.
    asyncio.run(writer.write(only_due=False))
    folder.unlink()
    partition.publish([DRAFT])
    asyncio.run(writer.write(only_due=False))

    assert numbers_in(folder) == [0, 1]
