"""Groups through one change each, in processes that can be paused and killed."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta

import pytest

from eventproc import (
    EventProcessorConfig,
    LoadBalancingStrategy,
)
from eventproc.testing import StoreFaults
from eventproc.testing.processes import run_processes
from tests.simulation.nodes import CheckedNode
from tests.simulation.world import World

EXPIRATION_S = 60.0
INTERVAL_S = 10.0
strategies = pytest.mark.parametrize("strategy", LoadBalancingStrategy, ids=lambda s: s.value)


def tell(
    story: Callable[[World], Coroutine[object, object, None]], partition_count: int = 8, **settings
) -> World:
    """Let a story happen, check that nothing was violated, and return its world."""

    async def whole() -> World:
        config = EventProcessorConfig(uses_store_thread=False, **settings)
        world = World("story", partition_count=partition_count, config=config)
        try:
            await story(world)
            world.stop_publishing()
            await world.until("is_all_handled", 120)
            await world.end()
        finally:
            world.stop_publishing()
            world.bury()
        return world

    return run_processes(whole())


async def settled(world: World, *owner_ids: str) -> list[CheckedNode]:
    """Start nodes of these names, and wait until they share everything."""
    nodes = [world.start(owner_id) for owner_id in owner_ids]
    await world.until("is_balanced", 60)
    return nodes


@strategies
def test_a_cold_start_shares_everything_without_a_conflict(strategy):
    """All find the same plan, so nobody claims what another one claims."""

    async def story(world):
        nodes = await settled(world, "a", "b", "c")

        assert sorted(world.owned_counts().values()) == [2, 3, 3]
        assert sum(n.statistics.conflict_count for n in nodes) == 0

    tell(story, load_balancing_strategy=strategy)


@strategies
def test_a_newcomer_gets_its_share_with_the_fewest_moves(strategy):
    """From 4, 4 to 3, 3, 2: two partitions move, and by hand-over nothing comes twice."""

    async def story(world):
        await settled(world, "a", "b")
        before = world.owner_by_partition()
        await settled(world, "c")
        after = world.owner_by_partition()

        assert sum(before[p] != after[p] for p in before) == 2

    world = tell(story, load_balancing_strategy=strategy)

    if strategy is LoadBalancingStrategy.COOPERATIVE:
        assert world.invariants.duplicate_count == 0
        assert world.invariants.stolen_count == 0


def test_who_leaves_hands_over_what_it_has():
    """Its partitions are served again within seconds, and nothing comes twice."""

    async def story(world):
        _, leaver = await settled(world, "a", "b")
        world.leave(leaver)

        assert await world.until("is_balanced", 20) < INTERVAL_S + 5

    world = tell(story)

    assert world.invariants.duplicate_count == 0


@pytest.mark.parametrize("budget_s", [5, 30])
def test_a_leaver_gives_away_even_what_its_handler_does_not_let_go(budget_s):
    """The notice to the group is part of the time-out; a call is cut in time for the rest."""

    async def story(world):
        _, leaver = await settled(world, "a", "b")
        world.behaviour.seconds_per_event = 1000.0
        await asyncio.sleep(10)
        world.leave(leaver)
        await asyncio.sleep(budget_s + 1)

        assert set(world.owner_by_partition().values()) == {"a"}

        world.behaviour.seconds_per_event = 0.0
        world.crash(world.node("a"))
        world.start("c")
        await world.until("is_balanced", 100)

    tell(story, shutdown_timeout=timedelta(seconds=budget_s))


def test_who_crashed_is_replaced_after_its_expiration():
    """Not before, for it might live."""

    async def story(world):
        _, victim = await settled(world, "a", "b")
        await asyncio.sleep(30)
        world.crash(victim)
        took_s = await world.until("is_balanced", 120)

        assert EXPIRATION_S / 2 < took_s < EXPIRATION_S + INTERVAL_S * 1.1 + 1

    tell(story)


@pytest.mark.parametrize("gone_s", [0.0, 5.0, 50.0])
def test_a_restart_under_the_same_name_moves_nothing(gone_s):
    """It takes up what it had, as long as that is not expired."""

    async def story(world):
        _, victim = await settled(world, "a", "b")
        await asyncio.sleep(40)
        before = world.owner_by_partition()
        moved_at_s = world.invariants.moved_at_s
        world.crash(victim)
        await asyncio.sleep(gone_s / 5 if gone_s > 20 else gone_s)
        world.start("b")
        await world.until("is_balanced", 40)
        await asyncio.sleep(100)

        assert world.owner_by_partition() == before
        assert world.invariants.moved_at_s == moved_at_s

    tell(story)


async def start_refused(world: World, owner_id: str) -> bool:
    """Start a second processor of this name; return whether it was refused."""
    node = world.start(owner_id, is_supervised=False)
    assert node.task is not None
    await asyncio.wait([node.task], timeout=60)
    return node.is_over


def test_a_second_processor_of_a_live_name_is_refused():
    """The one that was there goes on unharmed."""

    async def story(world):
        await settled(world, "a", "b")
        moved_at_s = world.invariants.moved_at_s

        assert await start_refused(world, "a")

        await asyncio.sleep(100)

        assert world.invariants.moved_at_s == moved_at_s
        assert world.node("a").statistics.lost_count == 0

    world = tell(story)

    assert world.invariants.duplicate_count == 0


def test_of_two_newcomers_of_one_name_one_is_refused():
    """Started at the same moment, they find out before both own something."""

    async def story(world):
        both = [world.start("a", is_supervised=False) for _ in range(2)]
        await asyncio.sleep(40)

        assert [node.is_over for node in both].count(True) == 1

        await world.until("is_balanced", 20)

    tell(story)


@pytest.mark.parametrize("paused_s", [20.0, 50.0, 100.0])
def test_a_paused_processor_yields_to_who_took_its_name(paused_s):
    """It could not answer in time; when it wakes up there must not be two for ever."""

    async def story(world):
        old, _ = await settled(world, "a", "b")
        old.process.pause()
        new = world.start("a")
        await asyncio.sleep(paused_s)
        old.process.resume()
        await asyncio.sleep(30)
        ended = [n for n in (old, new) if not n.statistics.owned]

        assert len(ended) == 1

        settled_at_s = world.now_s
        await asyncio.sleep(100)

        assert world.invariants.moved_at_s < settled_at_s
        assert [n for n in (old, new) if not n.statistics.owned] == ended

        for node in ended:
            world.nodes.remove(node)
            assert node.task is not None
            node.task.cancel()
            await asyncio.wait([node.task])

    tell(story)


def test_handlers_stop_before_the_expiration_when_the_store_is_gone():
    """The lease is not trusted any more; when the store is back they go on, and nothing moves."""

    async def story(world):
        await settled(world, "a", "b")
        before = world.owner_by_partition()
        gone_at_s = world.now_s
        for node in world.nodes:
            node.connection.is_out = True
        await asyncio.sleep(200)
        calls = [at_s for at_s, what, _ in world.invariants.history if " gets " in what]

        assert gone_at_s < max(calls) <= gone_at_s + EXPIRATION_S * 0.9

        for node in world.nodes:
            node.connection.is_out = False
        await asyncio.sleep(60)
        later = [at_s for at_s, what, _ in world.invariants.history if " gets " in what]

        assert max(later) > gone_at_s + 200
        assert world.owner_by_partition() == before

    tell(story)


def test_after_an_outage_nobody_is_pronounced_dead_at_once():
    """The others could not write either; whoever comes back a little later keeps what it had."""

    async def story(world):
        nodes = await settled(world, "a", "b", "c")
        moved_at_s = world.invariants.moved_at_s
        for node in nodes:
            node.connection.is_out = True
        await asyncio.sleep(100)
        for node in nodes:
            node.connection.is_out = False
            await asyncio.sleep(5)
        await asyncio.sleep(60)

        assert world.invariants.moved_at_s == moved_at_s

    tell(story)


def test_one_that_is_cut_off_is_replaced_and_stops_by_itself():
    """The others take over after the expiration; that nobody acts twice is checked all along."""

    async def story(world):
        lonely, _ = await settled(world, "a", "b")
        lonely.connection.is_out = True
        await asyncio.sleep(100)

        assert set(world.owner_by_partition().values()) == {"b"}

        lonely.connection.is_out = False
        await world.until("is_balanced", 60)

    tell(story)


def test_a_slow_answer_does_not_lengthen_a_lease():
    """It counts from before the write was sent, however late the answer comes."""

    async def story(world):
        slow, _ = await settled(world, "a", "b")
        slow.connection.faults = StoreFaults(delay_max=timedelta(seconds=100))
        await asyncio.sleep(400)
        slow.connection.faults = StoreFaults()
        await world.until("is_balanced", 100)

    tell(story)


def test_a_hub_that_grows_is_noticed():
    """The new partitions are shared like the others."""

    async def story(world):
        await settled(world, "a", "b")
        world.hub.grow(13)
        await world.until("is_balanced", 30)

        assert sorted(world.owned_counts().values()) == [6, 7]

    tell(story)


def test_a_plan_that_changes_while_partitions_are_drained_is_followed():
    """The newcomer they were meant for leaves again: they stay, or go where the new plan says."""

    async def story(world):
        await settled(world, "a", "b")
        world.behaviour.seconds_per_event = 4.0
        await asyncio.sleep(5)
        newcomer = world.start("c")
        await asyncio.sleep(INTERVAL_S + 1)
        world.leave(newcomer)
        world.behaviour.seconds_per_event = 0.0
        await world.until("is_balanced", 60)

    tell(story)


def test_a_steady_group_writes_renewals_and_nothing_else():
    """One write for each partition and third of the expiration."""

    async def story(world):
        nodes = await settled(world, "a", "b")
        before = sum(n.statistics.ownership_write_count for n in nodes)
        await asyncio.sleep(10 * EXPIRATION_S)
        written = sum(n.statistics.ownership_write_count for n in nodes) - before

        assert 8 * 25 <= written <= 8 * 30

    tell(story)


def test_a_lost_answer_to_the_first_presence_write_hides_no_living_namesake():
    """The second attempt finds its own incarnation; the first had found somebody else's."""

    async def story(world):
        await settled(world, "a")
        line = world.start("b").connection
        world.leave(world.node("b"))
        del line
        twin = world.start("a", is_supervised=False)
        twin.connection.faults = StoreFaults(answer_lost_rate=0.0)
        announced = twin.connection.announce_member
        lost: list[object] = []

        async def lose_first(group, member):
            result = await announced(group, member)
            if lost:
                return result
            lost.append(result)
            return type(result)(outcome=type(result.outcome).UNKNOWN)

        twin.connection.announce_member = lose_first
        await asyncio.wait([twin.task], timeout=60)

        assert twin.is_over

    tell(story)


def test_a_start_that_is_tried_again_hides_no_living_namesake():
    """The first attempt wrote its presence, and then lost sight of the store."""

    async def story(world):
        await settled(world, "a")
        twin = world.start("a", is_supervised=False)
        await asyncio.sleep(0.1)
        with twin.connection.outage():
            await asyncio.sleep(3)
        await asyncio.sleep(40)

        assert twin.is_over

    tell(story)


def test_a_restart_gets_in_although_some_looks_fail():
    """While it waits for the answer of a namesake it looks often, and needs the last look only."""

    async def story(world):
        _, victim = await settled(world, "a", "b")
        world.crash(victim)
        again = world.start("b")
        await asyncio.sleep(3)
        with again.connection.outage():
            await asyncio.sleep(3)
        await asyncio.sleep(INTERVAL_S)

        assert world.owned_counts() == {"a": 4, "b": 4}
        assert again.served_count == 4

    tell(story)
