"""Warm standbys: a backup prepares what it may have to take over."""

import asyncio
from typing import Any

from eventproc import PartitionHandler, Ring
from eventproc.testing import StoreFaults
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.scenarios.resource_setup import ResourceSetup, Using

NAMES = [f"r{number}" for number in range(8)]
BACKED_UP: dict[str, Any] = {"placement": Ring(backups=1, bound=8.0)}
"""Without a bound in effect: then the first backup is the next holder."""


class Preparing(Using):
    """Takes a minute to prepare, and notes what it is asked."""

    def __init__(self, setup: "PreparingSetup", took_s: float = 60.0) -> None:
        super().__init__(setup)
        self.took_s = took_s
        self.calls: list[str] = []
        self.is_ready = False
        setup.handlers.append(self)

    async def prepare(self, name):
        """Take a minute."""
        self.name = name
        self.calls.append("prepare")
        try:
            await seconds(self.took_s)
        except asyncio.CancelledError:
            self.calls.append("cancelled")
            await seconds(1)
            self.calls.append("closed")
            raise
        self.is_ready = True
        self.calls.append("ready")

    async def discard(self, name):
        """Note it."""
        assert name == self.name
        self.calls.append("discard")

    async def use(self, held, use):
        """Note whether it was ready."""
        self.calls.append("hold")
        use.events.append("ready" if self.is_ready else "cold")
        await super().use(held, use)


class PreparingSetup(ResourceSetup):
    """A setup that remembers its handlers."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.handlers: list[Preparing] = []


async def test_each_resource_is_prepared_by_one_backup_which_takes_over_warm():
    """The instance that was prepared holds the resource after the owner has gone."""
    setup = PreparingSetup(*NAMES)
    make = lambda: Preparing(setup)  # noqa: E731
    async with (
        setup.processor("x", make, **BACKED_UP),
        setup.processor("y", make, **BACKED_UP) as y,
        setup.processor("z", make, **BACKED_UP) as z,
    ):
        await seconds(120)
        held = setup.held()
        prepared = [h.name for h in setup.handlers if h.calls == ["prepare", "ready"]]
        shown = {*y.statistics().prepared, *z.statistics().prepared}
        setup.store_by_owner["x"].faults = StoreFaults(request_lost_rate=1.0)
        await seconds(80)
        taken = [setup.uses_of(name)[-1] for name in held["x"] if len(setup.uses_of(name)) > 1]
        setup.check()

    assert sorted(prepared) == sorted(NAMES)  # Each once.
    assert shown <= set(NAMES)
    assert shown
    assert [use.events for use in taken] == [["ready"]] * len(held["x"])


async def test_what_is_not_backed_up_any_more_is_discarded():
    """Also when the processor stops."""
    setup = PreparingSetup(*NAMES)
    make = lambda: Preparing(setup, 1.0)  # noqa: E731
    async with setup.processor("x", make, **BACKED_UP):
        y = setup.processor("y", make, **BACKED_UP)
        await y.start()
        await seconds(60)
        ready = [h for h in setup.handlers if h.calls == ["prepare", "ready"]]
        await y.stop()
        await seconds(30)
        count, calls = len(ready), [h.calls for h in ready]

    assert count == len(NAMES)
    assert all(call[2:] in (["discard"], ["hold"]) for call in calls)
    assert ["prepare", "ready", "discard"] in calls  # Of the one that stopped.


async def test_a_preparation_under_way_ends_before_hold_begins():
    """It is cancelled, and may close what it had opened."""
    setup = PreparingSetup("r0")
    make = lambda: Preparing(setup, 1000.0)  # noqa: E731
    x, y = (setup.processor(name, make, **BACKED_UP) for name in "xy")
    await x.start()
    await y.start()
    await seconds(30)
    (owner_id,) = setup.held()
    first, second = (x, y) if owner_id == "x" else (y, x)
    await first.stop()
    await seconds(30)
    calls = next(list(h.calls) for h in setup.handlers if "prepare" in h.calls)
    await second.stop()

    assert calls == ["prepare", "cancelled", "closed", "hold"]


def test_without_prepare_or_backups_nothing_is_prepared():
    """The handlers that exist are those that hold."""

    async def scenario(settings, kind):
        setup = PreparingSetup(*NAMES)
        made = []

        def make():
            made.append(kind(setup))
            return made[-1]

        async with setup.processor("x", make, **settings), setup.processor("y", make, **settings):
            await seconds(60)
            setup.check()
            return len(made) - len(setup.uses)

    assert run_virtual(scenario({}, Preparing)) == 0
    assert run_virtual(scenario(BACKED_UP, Using)) <= 2  # One for each, to find out.


async def test_partitions_are_prepared_as_well():
    """``prepare`` of the instance that ``initialize`` is called of later."""
    calls = []

    class Warm(PartitionHandler):
        def __init__(self):
            self.is_warm = False

        async def prepare(self, partition_id):
            self.is_warm = True

        async def initialize(self, context):
            calls.append((context.owner_id, context.partition_id, self.is_warm))

        async def process_events(self, context, events):
            """Do nothing."""

    setup = Setup(4)
    assert issubclass(Noting, PartitionHandler)
    async with setup.processor(Warm, "a", **BACKED_UP) as a:
        async with setup.processor(Warm, "b", **BACKED_UP):
            await seconds(60)
            before = len(calls)
            await a.stop()
            await seconds(30)
            taken = calls[before:]

    assert taken
    assert all(owner_id == "b" and is_warm for owner_id, _, is_warm in taken)
