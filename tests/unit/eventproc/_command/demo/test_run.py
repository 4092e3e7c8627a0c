"""The steps of the demo, with a group whose processors share the partitions at once."""

import asyncio
from types import SimpleNamespace
from typing import Any

from eventproc._command.demo import run
from eventproc._core.placement.even import even_plan

PARTITION_IDS = ["0", "1", "2", "3"]


class FakeChild:
    """A process that does nothing, and ends at once when it is asked to."""

    exit_code = 0

    def __init__(self, group, name):
        self.group, self.name = group, name

    def signal(self, number):
        """Leave the group."""
        self.group.kill(self.name)

    def write_line(self):
        """Publish nothing."""

    async def ended(self, timeout_s):
        """Return the exit code."""
        return 0


class FakeJournal:
    """Was written by nobody; the real one reads files in the loop."""

    def __init__(self, _):
        self.deliveries, self.handled = [], set()

    def read(self):
        """Find nothing."""


class FakeGroup:
    """A group without processes: its records, its hub and its children are all this object.

    Each change of the members is followed by the fewest moves that balance the partitions.
    """

    is_sqlite = True
    partition_ids = PARTITION_IDS
    group = folder = None

    def __init__(self):
        self.children = self.store = self
        self.owners = dict.fromkeys(PARTITION_IDS, "")
        self.live = set()

    def kill(self, name):
        self.live.remove(name)
        self._balance()

    def _balance(self):
        if self.live:
            owners = {p: owner for p, owner in self.owners.items() if owner in self.live}
            self.owners |= even_plan(PARTITION_IDS, owners, self.live)

    def start_processor(self, name):
        self.live.add(name)
        self._balance()
        return FakeChild(self, name)

    def start_publisher(self, count, *, rate):
        return FakeChild(self, "publisher")

    def check(self):
        """Find no failed child."""

    async def published(self):
        return {}

    async def stored_figures(self):
        return {}

    async def list_members(self, _):
        return SimpleNamespace(members=[SimpleNamespace(owner_id=name) for name in self.live])

    async def list_ownership(self, _):
        return SimpleNamespace(
            ownerships=[SimpleNamespace(partition_id=p, owner_id=o) for p, o in self.owners.items()]
        )


def test_each_change_is_reported_with_the_partitions_that_it_moved(monkeypatch):
    """And with the fewest that balance the group: whoever watches compares the two."""
    monkeypatch.setattr(run, "JournalReader", FakeJournal)
    monkeypatch.setattr(run, "POLL_INTERVAL_S", 0.0)
    monkeypatch.setattr(run, "BALANCED_FOR_S", 0.0)
    said: list[str] = []
    group: Any = FakeGroup()
    demo = run.DemoRun(group, event_count=0, processor_count=2, say=said.append)
    report = asyncio.run(demo.run())

    assert [(c.kind, c.moves, c.moves_minimum) for c in report.changes] == [
        ("start", 4, 4),
        ("join", 2, 2),
        ("join", 1, 1),
        ("kill", 2, 2),
        ("leave", 2, 2),
    ]
    assert report.is_good
    shown = "A 2, B 2; 2 partitions moved (fewest possible: 2)"
    assert any(line.endswith(shown) for line in said)
