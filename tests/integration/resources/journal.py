"""What a worker notes of itself: when a hold began and ended, and for what it had to wait.

A line is written at once, so that nothing is lost if the process is killed. Times are seconds of
the monotonic clock, which all processes of a machine share.
"""

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

Hold = tuple[str, int]
"""A name and its epoch."""


class JournalWriter:
    """Appends to a file, from any thread."""

    def __init__(self, path: str) -> None:
        """Open it."""
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def began(self, name: str, epoch: int) -> None:
        """Note that ``hold`` was called."""
        self._write("began", name, epoch, time.monotonic())

    def ended(self, name: str, epoch: int, ending_s: float) -> None:
        """Note that ``hold`` returns, which began to end at *ending_s*."""
        self._write("ended", name, epoch, ending_s, time.monotonic())

    def answered(self, method: str, asked_s: float) -> None:
        """Note that the store answered, or failed."""
        self._write("store", method, asked_s, time.monotonic())

    def starved(self, since_s: float) -> None:
        """Note that this process got no CPU time."""
        self._write("starved", since_s, time.monotonic())

    def _write(self, *noted: str | float) -> None:
        os.write(self._file, (json.dumps(noted) + "\n").encode())


@dataclass(slots=True)
class Journal:
    """What one process noted."""

    began_s: dict[Hold, float] = field(default_factory=dict)
    """When ``hold`` was first called."""

    ended_s: dict[Hold, tuple[float, float]] = field(default_factory=dict)
    """When it began to end, and when it had ended, the last time."""

    waits: list[tuple[float, float]] = field(default_factory=list)
    """Since when and until when it waited for an answer of the store, or for CPU time."""

    cycles_s: list[float] = field(default_factory=list)
    """When each reading of the group's records was complete."""

    @classmethod
    def read(cls, path: Path) -> "Journal":
        """Return what was noted; a process that was killed early has noted nothing."""
        journal = cls()
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                kind, *noted = json.loads(line)
            except ValueError:
                continue  # It was killed while it wrote.
            match kind:
                case "began":
                    name, epoch, at_s = noted
                    journal.began_s.setdefault((name, epoch), at_s)
                case "ended":
                    name, epoch, ending_s, ended_s = noted
                    journal.ended_s[name, epoch] = (ending_s, ended_s)
                case "starved":
                    since_s, until_s = noted
                    journal.waits.append((since_s, until_s))
                case _:
                    method, asked_s, answered_s = noted
                    journal.waits.append((asked_s, answered_s))
                    journal._note_reading(method, answered_s)
        return journal

    def _note_reading(self, method: str, answered_s: float) -> None:
        """Member records are read first, then ownership records, if at all."""
        match method:
            case "list_members":
                self.cycles_s.append(answered_s)
            case "list_ownership" if self.cycles_s:
                self.cycles_s[-1] = answered_s

    def had_outage(self, longest_s: float, since_s: float, until_s: float) -> bool:
        """Whether a reading in that time came later than *longest_s* after the one before."""
        return any(
            since_s <= next_s <= until_s and next_s - last_s > longest_s
            for last_s, next_s in pairwise(self.cycles_s)
        )

    def waits_within(self, since_s: float, until_s: float) -> list[tuple[float, float]]:
        """Return the waits of that time."""
        return [
            (max(begin_s, since_s), min(end_s, until_s))
            for begin_s, end_s in self.waits
            if begin_s < until_s and end_s > since_s
        ]


def length_s(spans: Iterable[tuple[float, float]]) -> float:
    """Return for how long at least one of the spans lasted."""
    total_s, until_s = 0.0, float("-inf")
    for begin_s, end_s in sorted(spans):
        total_s += max(0.0, end_s - max(begin_s, until_s))
        until_s = max(until_s, end_s)
    return total_s
