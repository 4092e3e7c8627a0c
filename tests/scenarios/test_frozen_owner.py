"""A processor that is suspended for longer than its expiration, on a ring: the primary is back."""

import asyncio
from datetime import timedelta

import pytest

from eventproc import LoadBalancingStrategy
from eventproc._core.placement.placement import GroupState, MemberFacts
from eventproc._core.placement.plan import plan
from eventproc._core.placement.ring import Ring
from tests.scenarios.test_groups import EXPIRATION_S, INTERVAL_S, run_world, settled

RING = Ring(bound=4.0, backups=1)
NAMES = ("a", "b", "c", "d")
CYCLE_S = INTERVAL_S * 1.1 + 1
"""The longest time from one poll to the next, and for the answers of the store."""


def backup_by_partition(partition_ids) -> dict[str, str]:
    """Return the first backup of each partition, with all members there."""
    members = dict.fromkeys(NAMES, MemberFacts())
    state = GroupState(resources=tuple(partition_ids), owner_by_resource={}, members=members)
    backups = RING.backups_of(state, plan(state, RING))
    assert backups is not None
    return {p: backups(p)[0] for p in partition_ids}


@pytest.mark.parametrize(
    "strategy", [LoadBalancingStrategy.COOPERATIVE, LoadBalancingStrategy.RELEASE]
)
def test_a_backup_serves_for_a_frozen_owner_and_hands_over_when_that_is_back(strategy):
    """Within an expiration and a cycle; what is handed back is not delivered twice."""
    seen = []
    duplicate_counts = []

    async def scenario(world):
        await settled(world, *NAMES)
        await asyncio.sleep(2 * INTERVAL_S)
        seen.append(world.owner_by_partition())
        frozen = world.node("b")
        frozen.process.pause()
        await asyncio.sleep(EXPIRATION_S + CYCLE_S)
        seen.append(world.owner_by_partition())
        await asyncio.sleep(3 * INTERVAL_S)
        duplicate_counts.append(world.invariants.duplicate_count)
        frozen.process.resume()
        await asyncio.sleep(3 * INTERVAL_S)
        seen.append(world.owner_by_partition())
        duplicate_counts.append(world.invariants.duplicate_count)

    run_world(
        scenario,
        partition_count=12,
        placement=RING,
        load_balancing_strategy=strategy,
        load_balancing_interval=timedelta(seconds=INTERVAL_S),
    )
    before, during, after = seen
    backups = backup_by_partition(before)
    frozen = [p for p, owner_id in before.items() if owner_id == "b"]

    assert len(frozen) > 1
    assert during == before | {p: backups[p] for p in frozen}
    assert after == before
    assert duplicate_counts[0] == duplicate_counts[1]
