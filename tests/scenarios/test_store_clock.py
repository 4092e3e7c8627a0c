"""The store's clock is set while a group runs: events may come again, and none is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds

GROUP: dict[str, Any] = {
    "load_balancing_interval": timedelta(seconds=10),
    "ownership_expiration": timedelta(seconds=60),
}
HALVES = ["a", "a", "b", "b"]


def group_of_two(*, clock_set_by: timedelta, then: Callable[[Setup], Awaitable[None]]) -> Setup:
    """Play a scenario whose clock is set when the group is at rest."""

    async def scenario() -> Setup:
        setup = Setup(partition_count=4)
        processors = [setup.processor(owner_id=name, **GROUP) for name in ("a", "b")]
        tasks = [asyncio.create_task(processor.serve()) for processor in processors]
        await seconds(60)
        now = setup.account.now
        setup.account.now = lambda: now() + clock_set_by
        await then(setup)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return setup

    return run_virtual(scenario())


@pytest.mark.parametrize("minutes", [-10, 10])
def test_no_event_is_lost_if_the_clock_of_the_store_is_set(minutes):
    """Set forward it makes each lease expire once. Then each processor gets its half again."""

    async def publishing(setup):
        for _ in range(10):
            for partition_id in setup.owners():
                setup.publish(1, partition_id)
            await seconds(30)
        assert sorted(setup.owners().values()) == HALVES

    setup = group_of_two(clock_set_by=timedelta(minutes=minutes), then=publishing)

    for partition_id in "0123":
        assert set(setup.numbers(partition_id)) == set(range(10))


def test_a_member_that_dies_when_the_clock_is_set_back_is_replaced_that_much_later():
    """Its records look young until the clock has come to their time again."""
    owners = []

    async def death(setup):
        setup.store_by_owner["b"].is_out = True
        for minutes in (9, 3):
            await seconds(minutes * 60)
            owners.append(sorted(setup.owners().values()))

    group_of_two(clock_set_by=timedelta(minutes=-10), then=death)

    assert owners == [HALVES, ["a"] * 4]
