"""Journals: the events that handlers really received, one file for each process.

Journals are independent of the SDK, which does not read them: they exist to check its results. A
process may be killed at any moment, so each call is one write to a file opened for appending.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

JOURNAL_VARIABLE = "EVENTPROC_DEMO_JOURNAL"
"""Environment variable: the folder of the journals."""

Range = tuple[int, int]
"""First and last sequence number, both included."""


class JournalWriter:
    """Appends the events that a process handled to its journal."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, partition_id: str, sequence_numbers: Sequence[int]) -> None:
        """Record that these events were handled. The record survives a kill of the process."""
        lines = "".join(
            f"{partition_id} {first} {last}\n" for first, last in runs(sequence_numbers)
        )
        os.write(self._file, lines.encode())

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def runs(sequence_numbers: Sequence[int]) -> list[Range]:
    """Join consecutive numbers of a rising sequence to ranges.

    >>> runs([3, 4, 5, 9])
    [(3, 5), (9, 9)]
    """
    if not sequence_numbers:
        return []
    gaps = [(a, b) for a, b in pairwise(sequence_numbers) if b != a + 1]
    firsts = [sequence_numbers[0], *(b for _, b in gaps)]
    lasts = [*(a for a, _ in gaps), sequence_numbers[-1]]
    return list(zip(firsts, lasts, strict=True))


class JournalReader:
    """Reads the journals of a folder while they are being written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offset_by_path: dict[Path, int] = {}

    def read(self) -> list[tuple[str, str, Range]]:
        """Return writer, partition id and range of each line since the last call.

        A line that is not complete yet is left for a later call.
        """
        found = []
        for path in sorted(self._folder.glob("*.journal")):
            with path.open("rb") as file:
                file.seek(self._offset_by_path.get(path, 0))
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._offset_by_path[path] = self._offset_by_path.get(path, 0) + len(whole)
            for line in whole.decode().splitlines():
                partition_id, first, last = line.split(" ")
                found.append((path.stem, partition_id, (int(first), int(last))))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """How many published events were handled or lost. ``handled`` counts each event once."""

    published: int
    handled: int
    duplicates: int
    """Deliveries of an event after its first one."""

    lost: int


def make_accounts(published: Mapping[str, Range], handled: Iterable[tuple[str, Range]]) -> Accounts:
    """Compare the events in each partition of the hub with those that handlers received.

    >>> make_accounts({"0": (0, 9)}, [("0", (0, 5)), ("0", (4, 7))])
    Accounts(published=10, handled=8, duplicates=2, lost=2)
    """
    ranges_by_partition: dict[str, list[Range]] = {}
    for partition_id, run in handled:
        ranges_by_partition.setdefault(partition_id, []).append(run)
    published_count = sum(last - first + 1 for first, last in published.values())
    delivered_count = handled_count = 0
    for partition_id, (first, last) in published.items():
        inside = [
            (max(first, a), min(last, b))
            for a, b in ranges_by_partition.get(partition_id, ())
            if a <= last and b >= first
        ]
        delivered_count += sum(b - a + 1 for a, b in inside)
        handled_count += covered(inside)
    return Accounts(
        published=published_count,
        handled=handled_count,
        duplicates=delivered_count - handled_count,
        lost=published_count - handled_count,
    )


def covered(ranges: Iterable[Range]) -> int:
    """Count the numbers that are in at least one of the ranges."""
    count, reached = 0, -1
    for first, last in sorted(ranges):
        count += max(0, last - max(first, reached + 1) + 1)
        reached = max(reached, last)
    return count
