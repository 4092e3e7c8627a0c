"""The CPU time of Spark."""

import os
import time
from pathlib import Path
from typing import Final

SAMPLE_INTERVAL_S: Final = 0.2
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class ProcessorTime:
    """CPU time of Java and of all processes below it, sampled from time to time.

    For a process that has ended, the last sample counts.
    """

    def __init__(self) -> None:
        self._own: dict[int, int] = {}
        self._begun = sum(self._sample().values())
        self._sampled_at = time.monotonic()

    @property
    def seconds(self) -> float:
        """The CPU time since the start."""
        return (sum(self._sample().values()) - self._begun) / TICKS_PER_S

    def wait(self) -> None:
        """Sleep for a moment, and take a sample if it is time."""
        time.sleep(0.01)
        if time.monotonic() - self._sampled_at > SAMPLE_INTERVAL_S:
            self._sample()
            self._sampled_at = time.monotonic()

    def _sample(self) -> dict[int, int]:
        parents: dict[int, int] = {}
        ticks: dict[int, int] = {}
        mine: set[int] = set()
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = entry.read_text().rpartition(")")
            except OSError:
                continue  # it ended just now
            pid, fields = int(entry.parent.name), rest.split()
            parents[pid] = int(fields[1])
            ticks[pid] = int(fields[11]) + int(fields[12])
            # Not the emulator, which is another child of this process.
            if parents[pid] == os.getpid() and name.endswith("(java"):
                mine.add(pid)
        while found := {pid for pid, parent in parents.items() if parent in mine} - mine:
            mine |= found
        self._own |= {pid: ticks[pid] for pid in mine if pid in ticks}
        return self._own
