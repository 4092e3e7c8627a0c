"""Planned replacements: each partition moves once, or not at all."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

import pytest

from eventproc import ConfigurationError, LoadBalancingStrategy
from eventproc.models import MemberStatus, PartitionOwnership
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, note_writes, seconds, stop_all

OLD = [f"old{number}" for number in range(8)]
NEW = [f"new{number}" for number in range(8)]


class OwnerChanges:
    """Counts how often each partition changes hands, until the end."""

    def __init__(self, setup: Setup) -> None:
        self.count: Counter[str] = Counter()
        self._owner_by_partition = setup.owners()
        self.end = note_writes(setup, "ownership_by_partition", self._written)

    def _written(self, ownerships: Mapping[str, PartitionOwnership], partition_id: str) -> None:
        owner_id = ownerships[partition_id].owner_id
        if owner_id not in {None, self._owner_by_partition.get(partition_id)}:
            self.count[partition_id] += 1
            self._owner_by_partition[partition_id] = owner_id

    @property
    def spread(self) -> int:
        """The most partitions of an owner less the fewest of another."""
        counts = Counter(self._owner_by_partition.values()).values()
        return max(counts) - min(counts)


async def started(setup, names, **settings):
    """Start processors at the same time."""
    processors = [setup.processor(owner_id=name, **settings) for name in names]
    await asyncio.gather(*(processor.start() for processor in processors))
    return processors


@pytest.mark.parametrize("strategy", LoadBalancingStrategy, ids=lambda strategy: strategy.value)
@pytest.mark.parametrize("surge", [1, 2, 8])
async def test_a_rolling_deploy_moves_each_partition_once(strategy, surge):
    """New processors start, as many old ones stop, and so on; no other partition moves."""
    setup = Setup(partition_count=64)
    settings = {"load_balancing_strategy": strategy, "shutdown_timeout": timedelta(minutes=1)}
    old = await started(setup, OLD, deployment_id="v1", **settings)
    await seconds(60)
    moves, new = OwnerChanges(setup), []
    for first in range(0, 8, surge):
        new += await started(setup, NEW[first : first + surge], deployment_id="v2", **settings)
        await seconds(30)
        await stop_all(old[first : first + surge])
        await seconds(30)
    moves.end()
    await stop_all(new)

    assert moves.spread == 0
    assert set(moves.count.values()) == {1}
    assert len(moves.count) == 64


def test_without_a_deployment_id_a_new_processor_gets_its_share_at_once():
    """Also with the same deployment id as the others: scaling out should not wait."""

    async def scenario(deployment_id):
        setup = Setup(partition_count=8)
        first = await started(setup, ["a"], deployment_id=deployment_id)
        await seconds(20)
        second = await started(setup, ["b"], deployment_id=deployment_id)
        await seconds(20)
        counts = Counter(setup.owners().values())
        await stop_all([*first, *second])
        return counts

    assert run_virtual(scenario("")) == {"a": 4, "b": 4}
    assert run_virtual(scenario("v1")) == {"a": 4, "b": 4}


async def test_a_canary_gets_its_share_after_the_standby_timeout():
    """No member leaves, so there is none to replace."""
    setup = Setup(partition_count=8)
    first = await started(setup, ["a"], deployment_id="v1")
    await seconds(20)
    canary = await started(setup, ["b"], deployment_id="v2", standby_timeout=timedelta(minutes=2))
    await seconds(110)
    before = Counter(setup.owners().values())
    await seconds(40)
    after = Counter(setup.owners().values())
    await stop_all([*first, *canary])

    assert (before, after) == ({"a": 8}, {"a": 4, "b": 4})


async def test_a_standby_takes_over_from_a_member_that_crashed():
    """Without the status *leaving*, too, its partitions go to one of the standbys."""
    setup = Setup(partition_count=12)
    old = await started(setup, ["a", "b", "c"], deployment_id="v1")
    await seconds(20)
    standbys = await started(setup, ["d", "e"], deployment_id="v2")
    await seconds(20)
    moves = OwnerChanges(setup)
    setup.store_by_owner["a"].is_out = True
    await seconds(90)
    moves.end()
    owners = Counter(setup.owners().values())
    setup.store_by_owner["a"].is_out = False
    await stop_all([*old, *standbys])

    assert sorted(owners.values()) == [4, 4, 4]
    assert {"b", "c"} < set(owners)
    assert sum(moves.count.values()) == 4


async def test_when_all_old_members_are_gone_the_standbys_share_all_partitions():
    """A deployment that stops the old processors first leaves no standby waiting."""
    setup = Setup(partition_count=9)
    old = await started(setup, ["a", "b"], deployment_id="v1")
    await seconds(20)
    new = await started(setup, ["c", "d", "e"], deployment_id="v2")
    await seconds(15)
    await stop_all(old)
    await seconds(30)
    counts = Counter(setup.owners().values())
    statuses = {
        member.status for member in setup.account.records(setup.group).member_by_owner.values()
    }
    await stop_all(new)

    assert counts == {"c": 3, "d": 3, "e": 3}
    assert statuses == {MemberStatus.ACTIVE}


async def test_a_planned_restart_under_the_same_id_moves_nothing():
    """It starts without waiting for another holder of its owner id to answer."""
    setup = Setup(partition_count=8)
    settings = {"static_membership": True}
    a, b = await started(setup, ["a", "b"], **settings)
    await seconds(20)
    moves = OwnerChanges(setup)
    for p in range(8):
        setup.publish(3, str(p))
    await seconds(2)
    await a.stop()
    for p in range(8):
        setup.publish(3, str(p))
    await seconds(30)
    while_stopped = len(setup.handled)
    (a,) = await started(setup, ["a"], **settings)
    await seconds(1)
    in_the_end = sorted(setup.handled)
    moves.end()
    await stop_all([a, b])

    assert while_stopped == 8 * 3 + 4 * 3
    assert in_the_end == [(str(p), number) for p in range(8) for number in range(6)]
    assert not moves.count


async def test_a_processor_that_does_not_restart_is_replaced():
    """Its partitions are kept for an expiration after its stop, and not for longer."""
    setup = Setup(partition_count=8)
    a, b = await started(setup, ["a", "b"], static_membership=True)
    await seconds(39)
    await a.stop()
    await seconds(55)
    kept = Counter(setup.owners().values())
    await seconds(25)
    after = Counter(setup.owners().values())
    await b.stop()

    assert (kept, after) == ({"a": 4, "b": 4}, {"b": 8})


async def test_a_kept_lease_is_renewed_at_the_stop():
    """The next start has a whole expiration, however long ago the last renewal was."""
    setup = Setup(partition_count=2)
    (a,) = await started(setup, ["a"], static_membership=True)
    await seconds(38.7)
    await a.stop()
    records = setup.account.records(setup.group).ownership_by_partition
    stopped = setup.now()

    assert [record.last_modified for record in records.values()] == [stopped, stopped]


def test_static_membership_needs_an_owner_id():
    """A random owner id would differ at the next start."""

    async def build():
        Setup().processor(owner_id=None, static_membership=True)

    with pytest.raises(ConfigurationError, match="owner_id is not given"):
        run_virtual(build())
