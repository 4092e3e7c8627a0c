"""The clock of the SQLite store: a stored offset plus the machine's uptime, and monotonic.

Rule 1: the time is an offset in the file plus the uptime of the machine. All processes of the
machine read the same uptime, so they agree on the time, whatever their wall clocks show.
Rule 2: a wall clock is read only to set that offset: in a new file, and after a reboot, when no
process of the group is left.
Rule 3: a process never returns a time before the latest one in the file. A process that cannot read
the uptime adds its own elapsed time to the latest time in the file.
"""

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CLOCK_ID: Final = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
"""A clock that also runs while the machine sleeps, if the system has one."""

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_UPTIME: Final = Path("/proc/uptime")
_NAMESPACE_OFFSETS: Final = Path("/proc/self/timens_offsets")

_UPTIME_RESOLUTION_NS: Final = 100_000_000
"""``/proc/uptime`` has hundredths of seconds; a larger difference shows that a clock is wrong."""

_READ: Final = "SELECT boot_id, offset_us, latest_us FROM clock"
_SET: Final = "UPDATE clock SET boot_id = ?, offset_us = ?, latest_us = ?"
_ADVANCE: Final = "UPDATE clock SET latest_us = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One run of the machine, from its start to its next start."""

    boot_id: str
    """Empty if the system does not name its boots."""

    began_us: int
    """The value of ``HostClock.elapsed_us`` at the boot: 0, except in a time namespace."""


class HostClock:
    """The clocks of this process; tests replace it."""

    def wall_us(self) -> int:
        """Return microseconds since 1970 by the wall clock, which may be set at any time."""
        return time.time_ns() // 1000

    def elapsed_us(self) -> int:
        """Return microseconds of a monotonic clock; its zero may differ between processes."""
        return _elapsed_ns() // 1000

    def boot(self) -> Boot | None:
        """Return when the machine started, by ``elapsed_us``; ``None`` if that is not known.

        The clock is compared with the system's own uptime. They differ in a process with faked
        clocks or with an uptime of its own (in some containers).
        """
        before_ns = _elapsed_ns()
        uptime = _text(_UPTIME)
        after_ns = _elapsed_ns()
        if uptime:
            uptime_ns = int(float(uptime.split()[0]) * 1e9)
            is_between = (
                before_ns - _UPTIME_RESOLUTION_NS <= uptime_ns <= after_ns + _UPTIME_RESOLUTION_NS
            )
            if not is_between:
                return None
        return Boot(boot_id=_text(_BOOT_ID).strip(), began_us=_namespace_offset_us())


def _elapsed_ns() -> int:
    return time.monotonic_ns() if _CLOCK_ID is None else time.clock_gettime_ns(_CLOCK_ID)


def _namespace_offset_us() -> int:
    """Return how far this process's uptime is ahead of the machine's, in a time namespace."""
    for line in _text(_NAMESPACE_OFFSETS).splitlines():
        name, seconds, nanoseconds = line.split()
        if name == "boottime":
            return int(seconds) * 1_000_000 + int(nanoseconds) // 1000
    return 0


def _text(path: Path) -> str:
    """Return the content of a system file, empty if it cannot be read."""
    try:
        return path.read_text("ascii")
    except OSError:
        return ""


class StoreClock:
    """The time of the store, for one process. All methods run inside a transaction."""

    def __init__(self, host: HostClock) -> None:
        """Call ``start`` before the other methods."""
        self._host = host
        self._offset_us = 0
        """The store's time less ``elapsed_us`` of this process."""

    def start(self, db: sqlite3.Connection) -> bool:
        """Take the offset from the file, or set it if the file has none of this boot.

        Returns whether the uptime is known. Otherwise this process never returns a time before
        those that other processes write.
        """
        boot_id, offset_us, latest_us = db.execute(_READ).fetchone()
        boot, elapsed_us = self._host.boot(), self._host.elapsed_us()
        if boot is None:
            now_us = latest_us or self._host.wall_us()
        else:
            uptime_us = elapsed_us - boot.began_us
            by_file_us = -1 if offset_us is None else uptime_us + offset_us
            # Without a boot id, a reboot is recognised by the smaller uptime.
            is_same_boot = boot_id == boot.boot_id and bool(boot_id or by_file_us >= latest_us)
            now_us = max(by_file_us if is_same_boot else self._host.wall_us(), latest_us)
            boot_id, offset_us = boot.boot_id, now_us - uptime_us
        self._offset_us = now_us - elapsed_us
        db.execute(_SET, (boot_id, offset_us, now_us))
        return boot is not None

    def now_us(self, db: sqlite3.Connection) -> int:
        """Return the store's time, in microseconds since 1970."""
        _, _, latest_us = db.execute(_READ).fetchone()
        elapsed_us = self._host.elapsed_us()
        now_us: int = max(elapsed_us + self._offset_us, latest_us)
        self._offset_us = now_us - elapsed_us
        return now_us

    def advance(self, db: sqlite3.Connection) -> int:
        """Return the store's time and write it, so that no process is behind it from now on."""
        now_us = self.now_us(db)
        db.execute(_ADVANCE, (now_us,))
        return now_us
