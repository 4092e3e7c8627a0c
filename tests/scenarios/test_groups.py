"""Groups of processors that can be paused and killed, through one change each."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from eventproc import EventProcessorConfig, LoadBalancingStrategy
from eventproc.models import ClaimResult, WriteOutcome
from eventproc.testing import StoreFaults
from eventproc.testing._processes import run_processes
from tests.simulation.faults import only_reads
from tests.simulation.nodes import CheckedNode
from tests.simulation.world import World

EXPIRATION_S = 60.0
INTERVAL_S = 10.0
strategies = pytest.mark.parametrize("strategy", LoadBalancingStrategy, ids=lambda s: s.value)


def run_world(
    scenario: Callable[[World], Coroutine[object, object, None]],
    partition_count: int = 8,
    **settings,
) -> World:
    """Run a scenario, check that no invariant was violated, and return its world."""

    async def whole() -> World:
        config = EventProcessorConfig(uses_store_thread=False, **settings)
        world = World("scenario", partition_count=partition_count, config=config)
        try:
            await scenario(world)
            world.stop_publishing()
            await world.until("is_all_handled", 120)
            await world.end()
        finally:
            world.stop_publishing()
            world.clean_up()
        return world

    return run_processes(whole())


async def settled(world: World, *owner_ids: str) -> list[CheckedNode]:
    """Start nodes of these names, and wait until the group is balanced."""
    nodes = [world.start(owner_id) for owner_id in owner_ids]
    await world.until("is_balanced", 60)
    return nodes


@strategies
def test_at_a_cold_start_partitions_are_shared_without_a_conflict(strategy):
    """All processors compute the same plan, so no two claim one partition."""

    async def scenario(world):
        nodes = await settled(world, "a", "b", "c")

        assert sorted(world.owned_counts().values()) == [2, 3, 3]
        assert sum(n.statistics.conflict_count for n in nodes) == 0

    run_world(scenario, load_balancing_strategy=strategy)


@strategies
def test_a_new_processor_gets_its_share_with_the_fewest_moves(strategy):
    """From 4 and 4 to 3, 3 and 2 two partitions move. Hand-overs repeat no event."""

    async def scenario(world):
        await settled(world, "a", "b")
        before = world.owner_by_partition()
        await settled(world, "c")
        after = world.owner_by_partition()

        assert sum(before[p] != after[p] for p in before) == 2

    world = run_world(scenario, load_balancing_strategy=strategy)

    if strategy is LoadBalancingStrategy.COOPERATIVE:
        assert world.invariants.duplicate_count == 0
        assert world.invariants.stolen_count == 0


def test_a_leaving_processor_hands_over_its_partitions():
    """They are served again within seconds, and no event is repeated."""

    async def scenario(world):
        _, leaving = await settled(world, "a", "b")
        world.leave(leaving)

        assert await world.until("is_balanced", 20) < INTERVAL_S + 5

    world = run_world(scenario)

    assert world.invariants.duplicate_count == 0


@pytest.mark.parametrize("budget_s", [5, 30])
def test_a_leaving_processor_hands_over_partitions_whose_handler_hangs(budget_s):
    """The drain delay is part of ``shutdown_timeout``; calls are cancelled in time for the rest."""

    async def scenario(world):
        _, leaving = await settled(world, "a", "b")
        world.behaviour.seconds_per_event = 1000.0
        await asyncio.sleep(10)
        world.leave(leaving)
        await asyncio.sleep(budget_s + 1)

        assert set(world.owner_by_partition().values()) == {"a"}

        world.behaviour.seconds_per_event = 0.0
        world.crash(world.node("a"))
        world.start("c")
        await world.until("is_balanced", 100)

    run_world(scenario, shutdown_timeout=timedelta(seconds=budget_s))


def test_a_crashed_processor_is_replaced_after_its_expiration():
    """Not before, because it might be alive."""

    async def scenario(world):
        _, victim = await settled(world, "a", "b")
        await asyncio.sleep(30)
        world.crash(victim)
        took_s = await world.until("is_balanced", 120)

        assert EXPIRATION_S / 2 < took_s < EXPIRATION_S + INTERVAL_S * 1.1 + 1

    run_world(scenario)


@pytest.mark.parametrize("gone_s", [0.0, 5.0, 50.0])
def test_a_restart_under_the_same_owner_id_moves_no_partition(gone_s):
    """It claims its former partitions, if their records have not expired."""

    async def scenario(world):
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

    run_world(scenario)


async def start_refused(world: World, owner_id: str) -> bool:
    """Start a second processor under this owner id; return whether it was refused."""
    node = world.start(owner_id, is_supervised=False)
    assert node.task is not None
    await asyncio.wait([node.task], timeout=60)
    return node.is_over


def test_a_second_processor_under_a_live_owner_id_is_refused():
    """The first one goes on."""

    async def scenario(world):
        await settled(world, "a", "b")
        moved_at_s = world.invariants.moved_at_s

        assert await start_refused(world, "a")

        await asyncio.sleep(100)

        assert world.invariants.moved_at_s == moved_at_s
        assert world.node("a").statistics.lost_count == 0

    world = run_world(scenario)

    assert world.invariants.duplicate_count == 0


def test_of_two_processors_that_start_under_one_owner_id_one_is_refused():
    """Started at the same moment, they find each other before both own a partition."""

    async def scenario(world):
        both = [world.start("a", is_supervised=False) for _ in range(2)]
        await asyncio.sleep(40)

        assert [node.is_over for node in both].count(True) == 1

        await world.until("is_balanced", 20)

    run_world(scenario)


@pytest.mark.parametrize("paused_s", [20.0, 50.0, 100.0])
def test_a_paused_processor_yields_to_the_one_that_took_its_owner_id(paused_s):
    """It could not answer in time, and when it resumes, one of the two has to end."""

    async def scenario(world):
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

    run_world(scenario)


def test_handlers_stop_before_the_expiration_during_an_outage_of_the_store():
    """The leases are not trusted. After the outage delivery continues, and no partition moves."""

    async def scenario(world):
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

    run_world(scenario)


def test_after_an_outage_no_owner_counts_as_dead_at_once():
    """No owner could renew. One that returns a little later keeps its partitions."""

    async def scenario(world):
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

    run_world(scenario)


@pytest.mark.parametrize(("count", "partition_count"), [(2, 8), (3, 8), (3, 2)])
def test_while_the_store_refuses_all_writes_no_owner_counts_as_dead(count, partition_count):
    """As a SQLite file that another program has locked: the records can be read, and all expire.
    The first write after that must not take what its owner could not renew."""

    async def scenario(world):
        nodes = await settled(world, *"abc"[:count])
        before, moved_at_s = world.owner_by_partition(), world.invariants.moved_at_s
        for node in nodes:
            node.connection.fate = only_reads
        await asyncio.sleep(85)
        for node in nodes:
            node.connection.fate = None
        await asyncio.sleep(60)

        assert world.owner_by_partition() == before
        assert world.invariants.moved_at_s == moved_at_s

    run_world(scenario, partition_count)


@pytest.mark.parametrize("names", ["ab", "abc"])
@pytest.mark.parametrize("hang_s", [0.0, 30.0])
def test_a_record_that_cannot_be_written_costs_nothing_else(names, hang_s):
    """As a blob that another program has leased. Its partition is not served; the partitions of a
    member that died are, and no other lease of its owner is lost, also while its writes hang."""

    async def scenario(world):
        nodes = await settled(world, *names)
        blocked = min(p for p, owner_id in world.owner_by_partition().items() if owner_id == "a")
        connections: list[Any] = [node.connection for node in nodes]
        for connection in connections:
            connection.claim_ownership = all_but(blocked, connection, hang_s)
        await asyncio.sleep(100)
        owned = await recorded(world)
        world.crash(nodes[-1])
        await asyncio.sleep(110)
        later = await recorded(world)

        assert nodes[0].statistics.lost_count == 0
        assert {p for p, owner_id in owned.items() if owner_id == "a"} <= {
            p for p, owner_id in later.items() if owner_id == "a"
        }
        assert names[-1] not in later.values()
        for connection in connections:
            del connection.claim_ownership

    run_world(scenario)


def all_but(blocked, connection, hang_s):
    """Return claims of a connection that get no answer for one partition."""
    original = type(connection).claim_ownership

    async def claim(group, claims):
        others = [each for each in claims if each.partition_id != blocked]
        results = await original(connection, group, others) if others else []
        if len(others) < len(claims):
            await asyncio.sleep(hang_s)
        by_id = {result.claim.partition_id: result for result in results}
        unknown = WriteOutcome.UNKNOWN
        return [by_id.get(c.partition_id, ClaimResult(claim=c, outcome=unknown)) for c in claims]

    return claim


async def recorded(world):
    """Return the owner that is recorded of each partition."""
    found = await world.nodes[0].connection.store.list_ownership(world.group)
    return {each.partition_id: each.owner_id for each in found.ownerships}


def test_a_store_that_is_slow_all_the_time_has_no_outage():
    """It answers; otherwise a member that died would never be replaced."""

    async def scenario(world):
        nodes = await settled(world, "a", "b", "c")
        slow = timedelta(seconds=11)
        for node in nodes:
            node.connection.faults = StoreFaults(delay_min=slow, delay_max=slow)
        await asyncio.sleep(120)
        world.crash(nodes[-1])
        await asyncio.sleep(150)
        owners = set((await recorded(world)).values())
        for node in nodes:
            node.connection.faults = StoreFaults()

        assert owners == {"a", "b"}
        assert [node.statistics.lost_count for node in nodes[:-1]] == [0, 0]

    run_world(scenario)


def test_a_processor_without_the_store_is_replaced_and_stops_by_itself():
    """After the expiration. No two processors handle events of one partition at any time."""

    async def scenario(world):
        lonely, _ = await settled(world, "a", "b")
        lonely.connection.is_out = True
        await asyncio.sleep(100)

        assert set(world.owner_by_partition().values()) == {"b"}

        lonely.connection.is_out = False
        await world.until("is_balanced", 60)

    run_world(scenario)


def test_a_slow_answer_does_not_lengthen_a_lease():
    """It counts from before the write was sent, however late the answer is."""

    async def scenario(world):
        slow, _ = await settled(world, "a", "b")
        slow.connection.faults = StoreFaults(delay_max=timedelta(seconds=100))
        await asyncio.sleep(400)
        slow.connection.faults = StoreFaults()
        await world.until("is_balanced", 100)

    run_world(scenario)


def test_new_partitions_of_a_hub_are_shared():
    """Like the others."""

    async def scenario(world):
        await settled(world, "a", "b")
        world.hub.grow(13)
        await world.until("is_balanced", 30)

        assert sorted(world.owned_counts().values()) == [6, 7]

    run_world(scenario)


def test_a_plan_that_changes_while_partitions_are_drained_is_followed():
    """The new owner leaves again, so the partitions go to the owners of the new plan."""

    async def scenario(world):
        await settled(world, "a", "b")
        world.behaviour.seconds_per_event = 4.0
        await asyncio.sleep(5)
        newcomer = world.start("c")
        await asyncio.sleep(INTERVAL_S + 1)
        world.leave(newcomer)
        world.behaviour.seconds_per_event = 0.0
        await world.until("is_balanced", 60)

    run_world(scenario)


def test_a_balanced_group_writes_nothing_but_renewals():
    """One for each partition and third of the expiration."""

    async def scenario(world):
        nodes = await settled(world, "a", "b")
        before = sum(n.statistics.ownership_write_count for n in nodes)
        await asyncio.sleep(10 * EXPIRATION_S)
        written = sum(n.statistics.ownership_write_count for n in nodes) - before

        assert 8 * 25 <= written <= 8 * 30

    run_world(scenario)


def test_a_start_notices_a_live_holder_although_its_first_answer_was_lost():
    """The second attempt finds its own record, which has replaced the holder's."""

    async def scenario(world):
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

    run_world(scenario)


def test_a_repeated_start_notices_a_live_holder_of_its_owner_id():
    """The first attempt wrote its member record, and then lost the store."""

    async def scenario(world):
        await settled(world, "a")
        twin = world.start("a", is_supervised=False)
        await asyncio.sleep(0.1)
        with twin.connection.outage():
            await asyncio.sleep(3)
        await asyncio.sleep(40)

        assert twin.is_over

    run_world(scenario)


def test_a_restart_succeeds_although_some_polls_fail():
    """It polls while it waits for another holder's answer, and needs only the last poll."""

    async def scenario(world):
        _, victim = await settled(world, "a", "b")
        world.crash(victim)
        restarted = world.start("b")
        await asyncio.sleep(3)
        with restarted.connection.outage():
            await asyncio.sleep(3)
        await asyncio.sleep(INTERVAL_S)

        assert world.owned_counts() == {"a": 4, "b": 4}
        assert restarted.served_count == 4

    run_world(scenario)
