"""For how long the names of a process that is silent have no holder, on virtual time."""

from contextlib import AsyncExitStack
from random import Random

import pytest

from eventproc._core.placement.placement import rank
from eventproc.testing import StoreFaults
from tests.scenarios.group_setup import seconds
from tests.scenarios.resource_setup import ResourceSetup

KEYS = [f"key/{number}" for number in range(10)]
EXPIRATION_S = 60.0
INTERVAL_S = 10.0
CYCLE_S = 11.0
REBALANCE_S = 0.275
"""Intervals vary by 10 %."""


@pytest.mark.parametrize(
    ("silent", "longest_s"),
    [
        ("b", EXPIRATION_S + CYCLE_S + REBALANCE_S),
        ("ab", EXPIRATION_S + CYCLE_S + 4 * REBALANCE_S),
    ],
)
@pytest.mark.parametrize("draw", [1, 2])
async def test_the_names_of_silent_processes_are_closed_for_an_expiration_and_a_cycle(
    silent, longest_s, draw
):
    """Also if two die at once: then their records expire one after the other."""
    rng = Random(draw)
    ranked = sorted(["p", "q", "r", "s", "t"], key=rank)
    lost = {ranked["ab".index(letter)] for letter in silent}
    setup = ResourceSetup(*KEYS)
    async with AsyncExitStack() as stack:
        for name in ranked:
            await stack.enter_async_context(setup.processor(name))
            await seconds(rng.uniform(1, 10))
        await seconds(EXPIRATION_S + rng.uniform(0, 10))
        names = {name for owner_id in lost for name in setup.held()[owner_id]}
        for owner_id in lost:
            setup.store_by_owner[owner_id].faults = StoreFaults(request_lost_rate=1.0)
        lost_s = setup.loop.time()
        await seconds(longest_s)
        setup.check()
        newest = {name: setup.uses_of(name)[-1] for name in names}
        for owner_id in lost:
            setup.store_by_owner[owner_id].faults = StoreFaults()

    assert [use for use in newest.values() if use.owner_id in lost or use.began_s < lost_s] == []


@pytest.mark.parametrize("draw", range(4))
async def test_after_an_outage_of_the_store_the_names_of_a_silent_process_stay_closed_for_longer(
    draw,
):
    """The others had no answers for half an expiration when its records expired.

    So they let it renew for two intervals more, and look again within the third.
    """
    rng = Random(draw)
    owner_ids = ["p", "q", "r"]
    setup = ResourceSetup(*KEYS)
    async with AsyncExitStack() as stack:
        for name in owner_ids:
            await stack.enter_async_context(setup.processor(name))
            await seconds(rng.uniform(1, 10))
        await seconds(EXPIRATION_S + rng.uniform(0, 10))
        lost, *others = rng.sample(owner_ids, 3)
        names = setup.held()[lost]
        lost_s = setup.loop.time()
        setup.store_by_owner[lost].faults = StoreFaults(request_lost_rate=1.0)
        await seconds(EXPIRATION_S / 2 - CYCLE_S)
        for owner_id in others:
            setup.store_by_owner[owner_id].faults = StoreFaults(request_lost_rate=1.0)
        await seconds(EXPIRATION_S / 2 + CYCLE_S)
        for owner_id in others:
            setup.store_by_owner[owner_id].faults = StoreFaults()
        await seconds(2 * INTERVAL_S + 2 * CYCLE_S + REBALANCE_S)
        setup.check()
        newest = [setup.uses_of(name)[-1] for name in names]
        setup.store_by_owner[lost].faults = StoreFaults()
    assert {use.owner_id for use in newest} <= {*others}

    assert min([use.began_s - lost_s for use in newest]) > EXPIRATION_S + 2 * INTERVAL_S
