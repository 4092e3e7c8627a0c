"""Journals: the events that handlers really received, one file for each process.

Journals are independent of the SDK, which does not read them: they exist to check its results. A
process may be killed at any moment, so each call is one write to a file opened for appending.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

JOURNAL_VARIABLE: Final = "EVENTPROC_DEMO_JOURNAL"
"""Environment variable: the folder of the journals."""

Event = tuple[str, int]
"""The partition id and the sequence number of an event."""


class JournalWriter:
    """Appends the events that a process handled to its journal."""

    def __init__(self, name: str) -> None:
        path = Path(os.environ[JOURNAL_VARIABLE]) / f"{name}.journal"
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, partition_id: str, sequence_numbers: Iterable[int]) -> None:
        """Record that these events were handled. The record survives a kill of the process."""
        os.write(self._file, f"{partition_id} {' '.join(map(str, sequence_numbers))}\n".encode())

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class JournalReader:
    """Reads the journals of a folder while they are being written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offset_by_path: dict[Path, int] = {}
        self.deliveries: list[tuple[str, Event]] = []
        """Each delivery that was read so far, with the name of its process."""

        self.handled: set[Event] = set()
        """The events among them, each once."""

    def read(self) -> None:
        """Read what was written since the last call. An incomplete line is left for a later one."""
        for path in self._folder.glob("*.journal"):
            offset = self._offset_by_path.get(path, 0)
            with path.open("rb") as file:
                file.seek(offset)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._offset_by_path[path] = offset + len(whole)
            for line in whole.decode().splitlines():
                partition_id, *numbers = line.split(" ")
                events = [(partition_id, int(number)) for number in numbers]
                self.deliveries += [(path.stem, event) for event in events]
                self.handled.update(events)
