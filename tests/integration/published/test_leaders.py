"""Real processes that follow a published plan: a leader is killed, and another one suspended."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from eventproc._core.placement.published_plan import PLAN_RECORD, PublishedPlan, plan_in
from eventproc.admin import live_owners
from eventproc.models import ConsumerGroup
from tests.integration.published.worker import EXPIRATION, GROUP, NAMES, make_store

ROOT: Final = Path(__file__).parents[3]
SOON_S: Final = 25.0
"""Within this time each step of the scenario is done, on a busy machine."""


class Process:
    """One process, and what it said."""

    def __init__(self, owner_id: str, *arguments: str) -> None:
        """Start it."""
        self.owner_id = owner_id
        self.said: list[tuple[str, Any]] = []
        module = "tests.integration.published.worker"
        store, armed = arguments
        self.popen = subprocess.Popen(
            [sys.executable, "-m", module, store, owner_id, armed],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            if line.endswith(b"\n"):  # The last line of a killed process may be incomplete.
                what, value = json.loads(line)
                self.said.append((what, value))

    def values(self, what: str) -> list[Any]:
        """Return what it said under this name, in order."""
        return [value for name, value in list(self.said) if name == what]

    def end(self) -> None:
        """Kill it, if it still runs."""
        self.popen.kill()
        self.popen.wait()
        self.reader.join()
        for pipe in (self.popen.stdin, self.popen.stdout):
            assert pipe is not None
            pipe.close()


class Scenario:
    """A group of real processes, and what an onlooker reads in the store."""

    def __init__(self, store: str, place: Path) -> None:
        """Start nothing yet."""
        self.armed = place / "armed"
        self.arguments = (store, str(self.armed))
        self.processes: dict[str, Process] = {}
        self.numbers: list[int] = []
        """Of the stored published plan, at each look."""

        self.published: PublishedPlan | None = None
        self.owners: dict[str, str] = {}
        self._store = make_store(store)
        self._runner = asyncio.Runner()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Open the store for looks; in the end nothing is left running."""
        try:
            self._runner.run(self._store.open())
            try:
                yield
            finally:
                self._runner.run(self._store.close())
        finally:
            self._runner.close()
            for process in self.processes.values():
                process.end()

    def start(self, *owner_ids: str) -> None:
        """Start processes."""
        for owner_id in owner_ids:
            self.processes[owner_id] = Process(owner_id, *self.arguments)

    async def _look(self) -> None:
        group = ConsumerGroup.of_resources(GROUP)
        record = await self._store.read_record(group, PLAN_RECORD)
        self.published = plan_in(record.content) if record else None
        if self.published is not None:
            self.numbers.append(self.published.number)
        live = await live_owners(self._store, group, EXPIRATION)
        self.owners = {name: held.owner_id for name, held in live.items() if held.owner_id}

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Look again and again until a condition holds."""
        until_s = time.monotonic() + SOON_S
        while not condition():
            assert time.monotonic() < until_s, f"{what}: {self.published}, {self.owners}"
            time.sleep(0.1)
            self._runner.run(self._look())

    def is_shared_by(self, *owner_ids: str) -> bool:
        """Whether the plan is for these, and each name has one of them as its live owner."""
        counts = Counter(self.owners.values())
        return (
            self.published is not None
            and self.published.members == tuple(sorted(owner_ids))
            and self.owners.keys() == set(NAMES)
            and counts.keys() == set(owner_ids)
            and max(counts.values()) - min(counts.values()) <= 1
        )

    @property
    def leader(self) -> str:
        """The leader that the published plan names."""
        assert self.published is not None
        return self.published.leader

    def withheld(self) -> dict[str, int]:
        """The number that a process was about to publish when it was suspended."""
        found = ((name, process.values("withheld")) for name, process in self.processes.items())
        return {name: values[0] for name, values in found if values}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "azurite"])
def test_no_older_plan_is_followed_when_leaders_are_killed_and_suspended(kind, request, tmp_path):
    """One is killed, the next one suspended at its write, and woken after a third has published."""
    store = str(tmp_path / "store.db")
    if kind == "azurite":
        connection, container = map(request.getfixturevalue, ("storage", "container"))
        store = f"{container} {connection}"
    scenario = Scenario(store, tmp_path)
    with scenario.watched():
        scenario.start("p0", "p1", "p2", "p3")
        scenario.until("all share", lambda: scenario.is_shared_by("p0", "p1", "p2", "p3"))

        killed = scenario.leader
        scenario.processes[killed].popen.kill()
        rest = {*scenario.processes} - {killed}
        scenario.until("the others share", lambda: scenario.is_shared_by(*rest))
        assert scenario.leader != killed

        scenario.armed.touch()
        scenario.start("p4")
        scenario.until("a leader is suspended", lambda: bool(scenario.withheld()))
        ((frozen, number),) = scenario.withheld().items()
        others = {*rest, "p4"} - {frozen}
        scenario.until("those that run share", lambda: scenario.is_shared_by(*others))
        assert scenario.leader != frozen
        assert scenario.processes[frozen].values("late write") == []

        woken = scenario.processes[frozen]
        woken.popen.send_signal(signal.SIGCONT)
        scenario.until("its write has ended", lambda: bool(woken.values("late write")))
        scenario.until("it has a share again", lambda: scenario.is_shared_by(*others, frozen))

        for name in (*others, frozen):
            scenario.processes[name].popen.terminate()
        codes = {name: process.popen.wait(SOON_S) for name, process in scenario.processes.items()}

    followed = {name: process.values("followed") for name, process in scenario.processes.items()}
    assert woken.values("late write") == ["LOST"]
    assert codes == dict.fromkeys((*others, frozen), 0) | {killed: -signal.SIGKILL}
    assert all(followed.values())
    for numbers in (scenario.numbers, *followed.values()):
        assert all(former <= later for former, later in pairwise(numbers))
    assert not any(number in numbers for numbers in (scenario.numbers, *followed.values()))
