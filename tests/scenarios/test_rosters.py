"""Rosters: members that are expected, come late or never, and an API that is away."""

import asyncio
from datetime import timedelta
from itertools import pairwise

import pytest

from eventproc import (
    ConfigurationError,
    Even,
    EventProcessor,
    EventProcessorConfig,
    FixedRoster,
    Ordinal,
    Published,
    Ring,
)
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.fake_roster import FakeCluster, FakeRoster
from tests.scenarios.group_setup import Setup, seconds, stop_all

PATIENCE_S = FakeRoster.patience.total_seconds()
INTERVAL_S = FakeRoster.interval.total_seconds()
EXPIRATION_S = EventProcessorConfig().ownership_expiration.total_seconds()
BLOCKS = {
    4: {str(p): f"consumer-{p // 3}" for p in range(12)},
    2: {str(p): f"consumer-{p // 6}" for p in range(12)},
    1: {str(p): "consumer-0" for p in range(12)},
}


def named(count):
    """Return the names of so many pods."""
    return [f"consumer-{n}" for n in range(count)]


class Pods(Setup):
    """Twelve partitions, and the pods of a StatefulSet."""

    def __init__(self, replicas, **settings) -> None:
        super().__init__(12)
        self.cluster = FakeCluster(named(replicas))
        self.settings = {"placement": Published(Ordinal()), **settings}
        self.moves: list[tuple[float, dict[str, str | None]]] = []
        self.pods: dict[str, EventProcessor] = {}

    def pod(self, name):
        """Return the processor of a pod that is not started yet."""
        roster = self.cluster.roster(name)
        return self.processor(owner_id=name, roster=roster, **self.settings)

    async def come(self, *numbers):
        """Start pods at the same time."""
        for number in numbers:
            name = f"consumer-{number}"
            self.pods[name] = self.pod(name)
        await asyncio.gather(*(self.pods[f"consumer-{n}"].start() for n in numbers))

    async def go(self, *numbers):
        """Stop pods, one after the other."""
        for number in numbers:
            await self.pods.pop(f"consumer-{number}").stop()

    async def end(self):
        """Stop all pods."""
        await stop_all(self.pods.values())

    async def watch(self):
        """Note each time when the owners change."""
        while True:
            owners = self.owners()
            if not self.moves or self.moves[-1][1] != owners:
                self.moves.append((self.now().timestamp(), owners))
            await asyncio.sleep(0.05)

    def moved(self):
        """Return how often each partition changed its owner, from one to another."""
        counts = dict.fromkeys(self.hub.partition_ids(), 0)
        for (_, former), (_, later) in pairwise(self.moves):
            for p, owner in later.items():
                last = former.get(p)
                counts[p] += last is not None and owner is not None and owner != last
        return counts


def result_of(scenario, replicas=4, **settings):
    """Play a scenario of pods on virtual time."""

    async def main():
        setup = Pods(replicas, **settings)
        watching = asyncio.create_task(setup.watch())
        try:
            return await scenario(setup)
        finally:
            watching.cancel()
            await setup.end()

    return run_virtual(main())


@pytest.mark.parametrize("placement", [Ordinal(), Ring(), Even()], ids=str)
def test_the_first_pod_leaves_the_others_their_share(placement):
    """It does not take what it would hand over a moment later: nothing moves twice."""

    async def scenario(setup):
        await setup.come(0)
        await seconds(30)
        alone = setup.owners()
        for number in (1, 2, 3):
            await setup.come(number)
            await seconds(8)
        await seconds(20)
        return alone, setup.owners(), setup.moved()

    alone, owners, moved = result_of(scenario, placement=Published(placement))

    assert set(alone.values()) == {"consumer-0"}
    assert alone.items() <= owners.items()
    assert len(alone) <= 4
    assert sorted(owners) == sorted(map(str, range(12)))
    assert set(owners.values()) == set(named(4))
    assert not any(moved.values())


def test_pods_that_never_come_are_replaced_after_the_patience():
    """And get their partitions when they come after all."""

    async def scenario(setup):
        await setup.come(0, 1)
        await seconds(PATIENCE_S - 5)
        waited = dict(setup.owners())
        await seconds(20)
        served = dict(setup.owners())
        await setup.come(2, 3)
        await seconds(30)
        return waited, served, setup.owners()

    waited, served, owners = result_of(scenario)

    assert sorted(waited) == sorted(map(str, range(6)))
    assert len(served) == 12
    assert set(served.values()) == set(named(2))
    assert owners == BLOCKS[4]


def test_more_replicas_leave_nothing_without_an_owner():
    """Neighbours go on to serve what is planned for pods that have not come; each moves once."""

    async def scenario(setup):
        await setup.come(0, 1)
        await seconds(20)
        setup.moves.clear()
        setup.cluster.names = named(4)
        await seconds(PATIENCE_S + 60)
        waited = dict(setup.owners())
        await setup.come(2, 3)
        await seconds(30)
        gaps = [owners for _, owners in setup.moves if len(owners) < 12 or None in owners.values()]
        return waited, setup.owners(), gaps, setup.moved()

    waited, owners, gaps, moved = result_of(scenario, replicas=2)

    assert set(waited.values()) == set(named(2))
    assert owners == BLOCKS[4]
    assert gaps == []
    assert max(moved.values()) <= 2


def test_fewer_replicas_move_each_partition_once():
    """Although the pods end one after the other: all know at once who will be left."""

    async def scenario(setup):
        await setup.come(0, 1, 2, 3)
        await seconds(20)
        setup.moves.clear()
        setup.cluster.names = named(1)
        await seconds(INTERVAL_S + 20)
        await setup.go(3)
        await seconds(10)
        await setup.go(2)
        await setup.go(1)
        return setup.owners(), setup.moved()

    owners, moved = result_of(scenario)

    assert owners == BLOCKS[1]
    assert moved == {str(p): int(p >= 3) for p in range(12)}


def test_an_api_that_is_away_moves_nothing():
    """Neither for five minutes, nor if the leader changes meanwhile."""

    async def scenario(setup):
        await setup.come(0, 1, 2, 3)
        await seconds(20)
        setup.cluster.goes_away()
        setup.moves.clear()
        await seconds(300)
        at_rest = setup.moved()
        leader = setup.pods.pop("consumer-0")
        await leader.stop()
        await seconds(60)
        without = setup.owners()
        await setup.come(0)
        await seconds(60)
        return at_rest, without, setup.owners()

    at_rest, without, owners = result_of(scenario)

    assert not any(at_rest.values())
    assert {p: o for p, o in without.items() if BLOCKS[4][p] != "consumer-0"} == {
        p: o for p, o in BLOCKS[4].items() if o != "consumer-0"
    }
    assert owners == BLOCKS[4]


def test_only_the_leader_reads():
    """Each pod reads once at its start; then one pod reads once in an interval."""

    async def scenario(setup):
        await setup.come(0)
        await seconds(5)
        await setup.come(1, 2, 3)
        await seconds(20)
        started = list(setup.cluster.requests)
        setup.cluster.requests.clear()
        await seconds(600)
        return started, list(setup.cluster.requests)

    started, requests = result_of(scenario)

    assert [started.count(name) for name in named(4)[1:]] == [1, 1, 1]
    assert set(requests) == {"consumer-0"}
    assert 55 <= len(requests) <= 60


def test_a_pod_that_dies_is_replaced_without_patience():
    """Patience is for members that have never come: its neighbours serve after its expiration."""

    async def scenario(setup):
        await setup.come(0, 1, 2, 3)
        await seconds(20)
        setup.store_by_owner["consumer-2"].is_out = True
        await seconds(EXPIRATION_S + 20)
        return setup.owners()

    owners = result_of(scenario)

    assert "consumer-2" not in owners.values()
    assert {p: o for p, o in owners.items() if BLOCKS[4][p] != "consumer-2"} == {
        p: o for p, o in BLOCKS[4].items() if o != "consumer-2"
    }


def test_a_roster_that_may_not_be_read_refuses_the_start():
    """Nothing is written, and the roster is closed."""

    async def scenario(setup):
        setup.cluster.error = ConfigurationError("apply this Role")
        pod = setup.pod("consumer-0")
        with pytest.raises(ConfigurationError, match="apply this Role"):
            await pod.start()
        records = setup.account.records(setup.group)
        return records.member_by_owner, pod._parts.roster.is_open

    assert result_of(scenario) == ({}, False)


def test_a_start_without_an_answer_goes_on():
    """The group then shares among those that are there, until the roster answers."""

    async def scenario(setup):
        setup.cluster.goes_away()
        await setup.come(0, 1)
        await seconds(20)
        without = dict(setup.owners())
        setup.cluster.comes_back()
        await setup.come(2, 3)
        await seconds(30)
        return without, setup.owners()

    without, owners = result_of(scenario)

    assert without == BLOCKS[2]
    assert owners == BLOCKS[4]


@pytest.mark.parametrize("error", [ConfigurationError("no right"), ValueError("a mistake")])
def test_an_error_of_a_roster_ends_no_processor(error, caplog):
    """It is logged once, and its end, too."""
    caplog.set_level("INFO")

    async def scenario(setup):
        await setup.come(0)
        await seconds(5)
        setup.cluster.error = error
        await seconds(60)
        setup.cluster.comes_back()
        await seconds(20)
        return setup.pods["consumer-0"].statistics().owned

    owned = result_of(scenario, replicas=1)
    events = [record.getMessage() for record in caplog.records]

    assert len(owned) == 12
    assert sum("roster_unavailable" in event for event in events) == 1
    assert sum("roster_available" in event for event in events) == 1


def test_a_roster_that_leaves_out_its_own_pod_is_logged(caplog):
    """The processor takes part all the same."""

    async def scenario(setup):
        setup.cluster.names = ["other-0"]
        await setup.come(0)
        await seconds(PATIENCE_S + 20)
        return len(setup.owners())

    assert result_of(scenario) == 12
    assert any("roster_omits_own" in record.getMessage() for record in caplog.records)


def test_the_roster_is_closed_with_the_processor():
    """And opened again at the next start."""

    async def scenario(setup):
        pod = setup.pod("consumer-0")
        opened = []
        for _ in range(2):
            async with pod:
                opened.append(pod._parts.roster.is_open)
            opened.append(pod._parts.roster.is_open)
        return opened

    assert result_of(scenario) == [True, False, True, False]


def test_a_roster_needs_a_published_placement():
    """Otherwise each processor would plan from what it has read itself."""
    setup = Pods(1)
    with pytest.raises(ConfigurationError, match=r"as text Published:Ordinal"):
        setup.processor(owner_id="a-0", roster=setup.cluster.roster("a-0"), placement=Ordinal())


def test_a_roster_needs_the_name_of_its_processor():
    """If it does not know it itself."""
    roster = FixedRoster(["a", "b"])
    with pytest.raises(ConfigurationError, match="owner_id is not given"):
        Pods(1).processor(owner_id=None, roster=roster, placement=Published(Even()))


def test_the_owner_id_is_the_one_in_the_roster():
    """Unless the processor gets another one."""
    roster = FixedRoster(["a", "b"], own_id="b")
    placement = Published(Even())
    assert roster.patience == timedelta(seconds=30)
    own = Pods(1).processor(owner_id=None, chance="1", roster=roster, placement=placement)
    other = Pods(1).processor(owner_id="a", roster=roster, placement=placement)

    assert (own.owner_id, other.owner_id) == ("b", "a")


@pytest.mark.parametrize(("names", "own_id"), [([], None), (["a"], "b")])
def test_a_fixed_roster_names_its_own_process(names, own_id):
    """An empty one is refused, too."""
    with pytest.raises(ConfigurationError, match="name all members"):
        FixedRoster(names, own_id=own_id)
