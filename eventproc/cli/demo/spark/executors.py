"""Find and kill the executor processes of Spark that descend from this process.

Processes are listed from ``/proc``, or by the command ``ps`` where that does not exist.
"""

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MARK: Final = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True, slots=True)
class _Process:
    parent: int
    command: str


def executors() -> list[int]:
    """Return the process ids of live executors that descend from this process."""
    processes = _processes()
    return sorted(
        number
        for number, process in processes.items()
        if _MARK in process.command and _is_ours(number, processes)
    )


def kill(process_id: int) -> None:
    """End a process at once: SIGKILL."""
    os.kill(process_id, signal.SIGKILL)


def _is_ours(number: int, processes: dict[int, _Process]) -> bool:
    while number in processes:
        number = processes[number].parent
        if number == os.getpid():
            return True
    return False


def _processes() -> dict[int, _Process]:
    if Path("/proc/self/stat").exists():
        return dict(filter(None, map(_read, Path("/proc").glob("[0-9]*"))))
    listing = subprocess.check_output(["ps", "-axo", "pid=,ppid=,command="], text=True)  # noqa: S607
    lines = (line.split(None, 2) for line in listing.splitlines())
    return {int(line[0]): _Process(int(line[1]), line[-1]) for line in lines}


def _read(folder: Path) -> tuple[int, _Process] | None:
    try:
        stat = (folder / "stat").read_text()
        command = (folder / "cmdline").read_text("utf-8", "replace")
    except OSError:
        return None  # The process has ended.
    name_and_rest = stat.rpartition(")")[2].split()
    is_dead = name_and_rest[0] == "Z"
    return int(folder.name), _Process(int(name_and_rest[1]), "" if is_dead else command)
