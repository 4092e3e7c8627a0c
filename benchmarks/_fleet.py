"""A group of real processes of one side, measured by the reports of the processes.

A partition counts as served from the report that it was opened to the report that it was closed, or
until its process was killed.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from azure.eventhub import EventData, EventHubProducerClient

from benchmarks._hub import SENT_AT, cpu_s_of
from benchmarks._member import Settings

MEMBER: Final = Path(__file__).with_name("_member.py")
BODY_BYTES: Final = 100


@dataclass
class Episode:
    """The measurements between two changes of a group."""

    begun_s: float = field(default_factory=time.monotonic)
    balanced_at_s: float | None = None
    """Since when every partition is served once, and evenly; ``None`` while that is not so."""

    ages_ms: list[float] = field(default_factory=list)
    """The age of each event when it was handled for the first time."""

    redelivered: int = 0

    @property
    def balanced_after_s(self) -> float | None:
        """Seconds until the group was balanced and stayed so."""
        return None if self.balanced_at_s is None else max(self.balanced_at_s - self.begun_s, 0.0)


class Member:
    """One process, and its last report."""

    def __init__(self, fleet: "Fleet", settings: Settings) -> None:
        self._fleet = fleet
        self.partitions: set[str] = set()
        self.calls: Counter[str] = Counter()
        self.is_ready = threading.Event()
        self.has_stopped = threading.Event()
        self._process = subprocess.Popen(
            [sys.executable, str(MEMBER), settings.as_text()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def go(self) -> None:
        """Let the process start receiving; it has imported everything already."""
        self.is_ready.wait()
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        """Stop the process gracefully (SIGTERM), or kill it (SIGKILL)."""
        self._process.send_signal(number)

    def end(self) -> None:
        """Kill the process if it runs, and wait for its end."""
        self._process.kill()
        self._process.wait()
        self._listener.join()

    def cpu_s(self) -> float:
        """The CPU time of the process."""
        return cpu_s_of(self._process.pid)

    def peak_mib(self) -> float:
        """The peak memory of the process."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("/proc does not have the peak memory of the process")

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            report = json.loads(line)
            if report["kind"] == "ready":
                self.is_ready.set()
            elif report["kind"] == "stopped":
                self.has_stopped.set()
            self._fleet.process_report(self, report)
        self.has_stopped.set()


class Fleet:
    """The processes of one side in one group, and their reports."""

    def __init__(self, settings: Settings, partition_count: int) -> None:
        self.settings = settings
        self.members: list[Member] = []
        self.episode = Episode()
        self.handled = 0
        """Events, counted as often as they were handled."""
        self.first_batch: tuple[float, float] | None = None
        self.last_batch: tuple[float, float] = (0.0, 0.0)
        """When they were reported, and the CPU time that had been used by then."""
        self._partition_count = partition_count
        self._seen: list[set[int]] = [set() for _ in range(partition_count)]
        self._lock = threading.Lock()

    def spawn(self, count: int) -> list[Member]:
        """Start processes that wait for ``join``."""
        members = [Member(self, self.settings) for _ in range(count)]
        for member in members:
            member.is_ready.wait()
        return members

    def join(self, members: list[Member]) -> Episode:
        """Let processes start receiving, and begin a new episode."""
        with self._lock:
            self.members += members
        episode = self._begin()
        for member in members:
            member.go()
        return episode

    def end_member(self, member: Member, how: signal.Signals) -> Episode:
        """Stop or kill a process, and begin a new episode."""
        episode = self._begin()
        member.signal(how)
        if how is signal.SIGKILL:
            member.end()  # its reports until then are still read
            with self._lock:
                self.members.remove(member)
                member.partitions.clear()
                self._check_balance(time.monotonic())
        return episode

    def leave(self, member: Member) -> None:
        """Remove a process that has stopped gracefully."""
        with self._lock:
            self.members.remove(member)
            self._check_balance(time.monotonic())

    def distinct(self) -> int:
        """How many different events were handled."""
        return sum(map(len, self._seen))

    def wait_balanced(self, hold_s: float, timeout_s: float) -> bool:
        """Wait until the group stays balanced for ``hold_s``; return whether it did in time."""
        until_s = time.monotonic() + timeout_s
        while time.monotonic() < until_s:
            balanced_at_s = self.episode.balanced_at_s
            if balanced_at_s is not None and time.monotonic() - balanced_at_s > hold_s:
                return True
            time.sleep(0.05)
        return False

    def calls(self) -> Counter[str]:
        """Requests to storage of the running processes."""
        return sum((member.calls for member in self.members), Counter())

    def end(self) -> None:
        """Kill all processes."""
        for member in self.members:
            member.end()

    def process_report(self, member: Member, report: dict[str, Any]) -> None:
        """Process one report."""
        with self._lock:
            match report["kind"]:
                case "batch":
                    self._note_batch(report)
                case "calls":
                    member.calls = Counter(report["sent"])
                case "open":
                    member.partitions.add(report["partition"])
                    self._check_balance(report["at"])
                case "close":
                    member.partitions.discard(report["partition"])
                    self._check_balance(report["at"])
                case _:
                    pass

    def _note_batch(self, report: dict[str, Any]) -> None:
        self.last_batch = report["at"], report["cpu"]
        self.first_batch = self.first_batch or self.last_batch
        numbers = range(report["first"], report["last"] + 1)
        seen = self._seen[int(report["partition"])]
        self.handled += len(numbers)
        self.episode.redelivered += sum(number in seen for number in numbers)
        self.episode.ages_ms += [
            age
            for number, age in zip(numbers, report["ages_ms"], strict=False)
            if number not in seen
        ]
        seen.update(numbers)

    def _begin(self) -> Episode:
        with self._lock:
            self.episode = Episode()
            return self.episode

    def _check_balance(self, at_s: float) -> None:
        """Note since when the group has been balanced, if it is."""
        counts = sorted(len(member.partitions) for member in self.members)
        served = {p for member in self.members for p in member.partitions}
        is_balanced = (
            bool(counts)
            and len(served) == sum(counts) == self._partition_count
            and counts[-1] - counts[0] <= 1
        )
        if not is_balanced:
            self.episode.balanced_at_s = None
        elif self.episode.balanced_at_s is None:
            self.episode.balanced_at_s = max(at_s, self.episode.begun_s)


class Publisher:
    """Sends timed events to one partition after another, at a steady rate, until ``end``."""

    def __init__(self, hub: str, partition_count: int, rate: float) -> None:
        self.sent = 0
        self._hub = hub
        self._partition_count = partition_count
        self._pause_s = 1 / rate
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Send no more."""
        self._is_over.set()
        self._thread.join()

    def _send(self) -> None:
        with EventHubProducerClient.from_connection_string(self._hub) as producer:
            partitions = [str(number) for number in range(self._partition_count)]
            # Connect first: it takes half a second for each partition, which must not delay events.
            for partition_id in partitions:
                producer.send_event(timed_event(), partition_id=partition_id)
                self.sent += 1
            due_s = time.monotonic()
            while not self._is_over.is_set():
                producer.send_event(
                    timed_event(), partition_id=partitions[self.sent % self._partition_count]
                )
                self.sent += 1
                due_s = max(due_s + self._pause_s, time.monotonic() - 1)
                time.sleep(max(due_s - time.monotonic(), 0))


def timed_event() -> EventData:
    """Return an event that begins with the time at which it is sent."""
    return EventData(SENT_AT.pack(time.monotonic()).ljust(BODY_BYTES, b"x"))
