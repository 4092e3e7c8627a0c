"""Named resources: each has one holder at a time, also while members and resources change."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from eventproc import Backoff, ConfigurationError, Resources
from eventproc.testing import StoreFaults
from tests.scenarios.group_setup import seconds
from tests.scenarios.resource_setup import ResourceSetup, Using

KEYS = [f"key/{number}" for number in range(10)]
EXPIRATION_S = 60.0
CYCLE_S = 11.0


async def test_ten_keys_are_shared_by_four_processes_as_3_3_2_2():
    """Also after one stops and joins again; names may have a slash."""
    setup = ResourceSetup(*KEYS)
    async with AsyncExitStack() as stack:
        members = [setup.processor(name) for name in "abcd"]
        for member in members:
            await stack.enter_async_context(member)
            await seconds(15)
        first = sorted(map(len, setup.held().values()))
        await members[0].stop()
        await seconds(15)
        without = sorted(map(len, setup.held().values()))
        await members[0].start()
        await seconds(15)
        again = sorted(map(len, setup.held().values()))
    setup.check()
    assert {use.name for use in setup.uses} == set(KEYS)

    assert (first, without, again, setup.held()) == ([2, 2, 3, 3], [3, 3, 4], [2, 2, 3, 3], {})


async def test_a_resource_that_is_added_or_deleted_is_taken_or_dropped_in_the_next_cycle():
    """The list is read every five seconds here."""
    setup = ResourceSetup("a", "b")
    async with setup.processor("x"), setup.processor("y"):
        await seconds(31)
        began_s = setup.loop.time()
        setup.names[:] = ["b", "c"]
        await seconds(10)
        (dropped,), (added,) = setup.uses_of("a"), setup.uses_of("c")
        records = setup.account.records(setup.group).ownership_by_partition
        released = records["a"].owner_id
        await seconds(60)
    setup.check()

    assert 0 < (dropped.ended_s - began_s) < 7
    assert 0 < (added.began_s - began_s) < 7
    assert released is None


async def test_a_group_may_have_no_resources():
    """It begins when the first one is there."""
    setup = ResourceSetup()
    async with setup.processor("x") as processor:
        await seconds(30)
        is_balanced = processor.statistics().is_balanced
        setup.names.append("a")
        await seconds(7)
        found = (is_balanced, setup.held())

    assert found == (True, {"x": ["a"]})


async def test_a_holder_without_its_store_lets_go_before_another_one_begins():
    """The lease is trusted for nine tenths of the expiration; the other one waits for all of it."""
    setup = ResourceSetup("a")
    async with setup.processor("x"):
        await seconds(15)
        async with setup.processor("y"):
            await seconds(15)
            setup.store_by_owner["x"].faults = StoreFaults(request_lost_rate=1.0)
            lost_s = setup.loop.time()
            await seconds(EXPIRATION_S + CYCLE_S)
            first, second = setup.uses
            setup.check()
            setup.store_by_owner["x"].faults = StoreFaults()
            await seconds(30)
    assert len(setup.uses) == 2  # Nothing moves back.

    assert (second.began_s - lost_s) <= EXPIRATION_S + CYCLE_S
    assert second.epoch > first.epoch


async def test_a_holder_that_cannot_renew_in_time_is_suspended_and_goes_on_with_its_epoch():
    """Nobody else took the resource meanwhile."""
    setup = ResourceSetup("a")
    async with setup.processor("x") as processor:
        await seconds(15)
        setup.store_by_owner["x"].faults = StoreFaults(request_lost_rate=1.0)
        await seconds(100)
        setup.store_by_owner["x"].faults = StoreFaults()
        await seconds(15)
        counters = processor.statistics().counters
    setup.check()
    first, second = setup.uses

    assert (counters.suspended_count, counters.hold_error_count, first.epoch == second.epoch) == (
        1,
        0,
        True,
    )


class Draining(Using):
    """Notes the order of calls."""

    async def use(self, held, use):
        """Note the cancellation."""
        self.current = use
        try:
            await super().use(held, use)
        except asyncio.CancelledError:
            use.events.append("cancelled")
            raise

    async def drain(self, held):
        """Take a second."""
        self.current.events.append("drain")
        await seconds(1)
        self.current.events.append("drained")


async def test_a_drain_that_takes_too_long_is_cut_and_the_lease_handed_over():
    """It has 80 % of ``shutdown_timeout``."""

    class Endless(Using):
        async def drain(self, held):
            await seconds(1000)

    setup = ResourceSetup("a")
    processor = setup.processor("x", lambda: Endless(setup))
    async with processor:
        await seconds(15)
        began_s = setup.loop.time()
        await processor.stop()
        records = setup.account.records(setup.group).ownership_by_partition
        took_s, held, owner_id = setup.loop.time() - began_s, setup.held(), records["a"].owner_id

    assert 15 < took_s < 30
    assert (held, owner_id) == ({}, None)


@pytest.mark.parametrize("is_returning", [True, False])
async def test_a_hold_that_ends_by_itself_is_called_again_and_then_given_to_another(
    is_returning, caplog
):
    """After ``failover_timeout``; a processor on which it works keeps it."""

    class Failing(Using):
        async def use(self, held, use):
            await seconds(0.1)
            if not is_returning:
                raise OSError("no licence")

    setup = ResourceSetup("a")
    settings = {
        "failover_timeout": timedelta(seconds=60),
        "handler_backoff": Backoff(maximum=timedelta(seconds=10)),
    }
    async with setup.processor("x", lambda: Failing(setup), **settings) as failing:
        await seconds(40)
        shown = failing.statistics().resources[0]
        async with setup.processor("y"):
            await seconds(100)
            setup.check()
            held, use_count = setup.held(), len(setup.uses)

    assert shown.failing_seconds > 30
    assert ("no licence" in (shown.error or "")) is not is_returning
    assert held == {"y": ["a"]}
    assert 6 < use_count < 30
    assert "hold_failed" in caplog.text


async def test_alone_a_failing_hold_is_tried_for_ever():
    """There is no other processor to give the resource to."""

    class Failing(Using):
        async def use(self, held, use):
            if self.setup.loop.time() < 1000:
                raise OSError("not yet")
            await super().use(held, use)

    setup = ResourceSetup("a")
    async with setup.processor("x", lambda: Failing(setup)) as processor:
        await seconds(1100)
        setup.check()
        found = (setup.held(), processor.statistics().resources[0].error)

    assert found == ({"x": ["a"]}, None)


async def test_a_hold_that_ignores_its_cancellation_keeps_its_lease_and_is_reported(caplog):
    """The next holder waits until it has ended, or until ``handoff_timeout`` is over."""

    class Stubborn(Using):
        async def use(self, held, use):
            try:
                await super().use(held, use)
            except asyncio.CancelledError:
                await seconds(100)
                raise

    setup = ResourceSetup("a", "b")
    async with setup.processor(
        "x", lambda: Stubborn(setup), handoff_timeout=timedelta(seconds=200)
    ):
        await seconds(15)
        async with setup.processor("y", handoff_timeout=timedelta(seconds=200)):
            await seconds(120)
            setup.check()
            found = {owner: len(names) for owner, names in setup.held().items()}

    assert found == {"x": 1, "y": 1}
    assert "hold_overdue" in caplog.text


async def test_a_handler_that_cannot_be_made_is_tried_again(caplog):
    """The error is logged; other resources are not concerned."""
    setup = ResourceSetup("a", "b")
    made = []

    def make():
        made.append(1)
        if len(made) == 1:
            raise OSError("no memory")
        return Using(setup)

    async with setup.processor("x", make):
        await seconds(15)
        found = setup.held()

    assert found == {"x": ["a", "b"]}
    assert "no memory" in caplog.text


async def test_a_list_that_fails_keeps_the_resources_that_are_known(caplog):
    """It is read again after ``every``; at the start the error is raised."""
    setup = ResourceSetup("a")
    async with setup.processor("x") as processor:
        await seconds(15)
        setup.is_failing = True
        await seconds(30)
        held = setup.held()
        setup.is_failing = False
        setup.names.append("b")
        await seconds(15)
        await processor.stop()
        setup.is_failing = True
        with pytest.raises(Exception, match="listing the resources failed") as failure:
            await processor.start()
        found = (held, type(failure.value).__name__)

    assert found == ({"x": ["a"]}, "SourceUnavailableError")
    assert "partition_ids_failed" in caplog.text


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("a", "give a list of names"),
        ([""], "give a text"),
        ([1], "give a text"),
        (["x" * 513], "at most 512"),
    ],
)
def test_names_that_cannot_be_stored_are_refused(names, message):
    """When the list is given, with the name and the remedy."""
    with pytest.raises(ConfigurationError, match=message):
        Resources(names)
