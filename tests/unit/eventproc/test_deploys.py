"""Planned replacements: each partition moves once, or not at all."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from eventproc import ConfigurationError, LoadBalancingStrategy
from eventproc.membership import MemberStatus
from eventproc.testing.virtual_time import run_virtual
from tests.unit.eventproc.scene import Scene, seconds

OLD = [f"old{number}" for number in range(8)]
NEW = [f"new{number}" for number in range(8)]


class Moves:
    """Counts how often each partition changed hands, by looking often."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.count: Counter[str] = Counter()
        self._before = scene.owners()
        self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            await seconds(0.01)
            now = {p: owner for p, owner in self._scene.owners().items() if owner is not None}
            self.count.update(p for p, owner in now.items() if owner != self._before.get(p))
            self._before = {**self._before, **now}

    async def end(self) -> None:
        """Stop counting."""
        self._watching.cancel()
        await asyncio.wait([self._watching])

    @property
    def spread(self) -> int:
        """Most partitions of one owner less the fewest of another."""
        counts = Counter(self._before.values()).values()
        return max(counts) - min(counts)


async def started(scene, names, **settings):
    """Start processors at the same time."""
    processors = [scene.processor(owner_id=name, **settings) for name in names]
    await asyncio.gather(*(processor.start() for processor in processors))
    return processors


async def stop_all(processors):
    """Stop whatever runs."""
    await asyncio.gather(*(processor.stop() for processor in processors))


@pytest.mark.parametrize("strategy", LoadBalancingStrategy, ids=lambda strategy: strategy.value)
@pytest.mark.parametrize("surge", [1, 2, 8])
def test_a_rolling_deploy_moves_each_partition_once(strategy, surge):
    """New ones start, as many old ones stop, and so on; nobody else's partitions move."""

    async def story():
        scene = Scene(partition_count=64)
        settings = {"load_balancing_strategy": strategy, "shutdown_timeout": timedelta(minutes=1)}
        old = await started(scene, OLD, generation="v1", **settings)
        await seconds(60)
        moves, new = Moves(scene), []
        for first in range(0, 8, surge):
            new += await started(scene, NEW[first : first + surge], generation="v2", **settings)
            await seconds(30)
            await stop_all(old[first : first + surge])
            await seconds(30)
        await moves.end()
        await stop_all(new)
        return moves

    moves = run_virtual(story())

    assert moves.spread == 0
    assert set(moves.count.values()) == {1}
    assert len(moves.count) == 64


def test_without_a_generation_a_newcomer_takes_its_share_at_once():
    """Who scales out does not want to wait; the same holds for one of the same generation."""

    async def story(generation):
        scene = Scene(partition_count=8)
        first = await started(scene, ["a"], generation=generation)
        await seconds(20)
        second = await started(scene, ["b"], generation=generation)
        await seconds(20)
        counts = Counter(scene.owners().values())
        await stop_all([*first, *second])
        return counts

    assert run_virtual(story("")) == {"a": 4, "b": 4}
    assert run_virtual(story("v1")) == {"a": 4, "b": 4}


def test_a_canary_waits_for_its_share_no_longer_than_its_patience():
    """Nobody leaves, so there is nothing to replace."""

    async def story():
        scene = Scene(partition_count=8)
        first = await started(scene, ["a"], generation="v1")
        await seconds(20)
        canary = await started(scene, ["b"], generation="v2", reserve_patience=timedelta(minutes=2))
        await seconds(110)
        before = Counter(scene.owners().values())
        await seconds(40)
        after = Counter(scene.owners().values())
        await stop_all([*first, *canary])
        return before, after

    assert run_virtual(story()) == ({"a": 8}, {"a": 4, "b": 4})


def test_a_reserve_takes_over_from_one_that_crashed():
    """Nobody has to say that it goes; what it had goes to one of those that wait."""

    async def story():
        scene = Scene(partition_count=12)
        old = await started(scene, ["a", "b", "c"], generation="v1")
        await seconds(20)
        reserve = await started(scene, ["d", "e"], generation="v2")
        await seconds(20)
        moves = Moves(scene)
        scene.store_by_owner["a"].is_out = True
        await seconds(90)
        await moves.end()
        owners = Counter(scene.owners().values())
        scene.store_by_owner["a"].is_out = False
        await stop_all([*old, *reserve])
        return owners, sum(moves.count.values())

    owners, count = run_virtual(story())

    assert sorted(owners.values()) == [4, 4, 4]
    assert {"b", "c"} < set(owners)
    assert count == 4


def test_when_everybody_old_is_gone_the_reserves_share():
    """A deploy that stops the old ones first leaves nobody waiting."""

    async def story():
        scene = Scene(partition_count=9)
        old = await started(scene, ["a", "b"], generation="v1")
        await seconds(20)
        new = await started(scene, ["c", "d", "e"], generation="v2")
        await seconds(15)
        await stop_all(old)
        await seconds(30)
        counts = Counter(scene.owners().values())
        statuses = {
            member.status for member in scene.account.records(scene.group).member_by_owner.values()
        }
        await stop_all(new)
        return counts, statuses

    counts, statuses = run_virtual(story())

    assert counts == {"c": 3, "d": 3, "e": 3}
    assert statuses == {MemberStatus.ACTIVE}


def test_a_planned_restart_under_the_same_id_moves_nothing():
    """It comes back at once, without asking whether somebody has its name, and goes on."""

    async def story():
        scene = Scene(partition_count=8)
        settings = {"keeps_ownership_on_stop": True}
        a, b = await started(scene, ["a", "b"], **settings)
        await seconds(20)
        moves = Moves(scene)
        for p in range(8):
            scene.publish(3, str(p))
        await seconds(2)
        await a.stop()
        for p in range(8):
            scene.publish(3, str(p))
        await seconds(30)
        while_away = len(scene.handled)
        (a,) = await started(scene, ["a"], **settings)
        await seconds(1)
        at_last = sorted(scene.handled)
        await moves.end()
        await stop_all([a, b])
        return while_away, at_last, moves.count

    while_away, at_last, moves = run_virtual(story())

    assert while_away == 8 * 3 + 4 * 3
    assert at_last == [(str(p), number) for p in range(8) for number in range(6)]
    assert not moves


def test_who_does_not_come_back_is_replaced():
    """Its partitions are kept for an expiration after its stop, and not for longer."""

    async def story():
        scene = Scene(partition_count=8)
        a, b = await started(scene, ["a", "b"], keeps_ownership_on_stop=True)
        await seconds(39)
        await a.stop()
        await seconds(55)
        kept = Counter(scene.owners().values())
        await seconds(25)
        after = Counter(scene.owners().values())
        await b.stop()
        return kept, after

    assert run_virtual(story()) == ({"a": 4, "b": 4}, {"b": 8})


def test_keeping_needs_a_name_that_stays():
    """A drawn owner id is another one at the next start."""

    async def build():
        Scene().processor(owner_id=None, keeps_ownership_on_stop=True)

    with pytest.raises(ConfigurationError, match="needs an owner_id"):
        run_virtual(build())
