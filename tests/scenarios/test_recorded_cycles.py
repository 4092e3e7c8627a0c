"""What holds for every cycle of simulated groups, whatever its listing shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random

import pytest

from eventproc._core.ownership.cycle import Actions, decide
from eventproc._core.ownership.living import Listing
from eventproc._core.ownership.memory import GroupMemory, observe
from eventproc._core.ownership.rules import Rules
from eventproc._group import balancer
from eventproc.models import LoadBalancingStrategy, MemberStatus
from tests.simulation.suites import play

PLAYS = [(suite, seed) for suite in ("safety", "liveness", "edges", "small") for seed in range(4)]


@dataclass(frozen=True)
class Cycle:
    """The input of one cycle."""

    memory: GroupMemory
    listing: Listing
    rules: Rules
    now_s: float

    def decided(self) -> tuple[GroupMemory, Actions]:
        """Observe and decide."""
        memory = observe(self.memory, self.listing, self.rules, self.now_s)
        return memory, decide(memory, self.rules)


@contextmanager
def recorded() -> Iterator[list[Cycle]]:
    """Record each cycle of the processors that run meanwhile."""
    cycles: list[Cycle] = []

    def observe_recorded(
        memory: GroupMemory, listing: Listing, rules: Rules, now_s: float
    ) -> GroupMemory:
        cycles.append(Cycle(memory, listing, rules, now_s))
        return observe(memory, listing, rules, now_s)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balancer, "observe", observe_recorded)
        yield cycles


@pytest.fixture(name="cycles", scope="module", params=PLAYS, ids=lambda p: f"{p[0]}-{p[1]}")
def _cycles(request) -> list[Cycle]:
    """The cycles of one simulated group."""
    with recorded() as cycles:
        play(*request.param)
    return cycles


def shuffled(listing: Listing, rng: Random) -> Listing:
    """Return the listing with its records in another order."""
    owned, present = listing.owned, listing.present
    ownerships = tuple(rng.sample(owned.ownerships, len(owned.ownerships)))
    members = tuple(rng.sample(present.members, len(present.members)))
    return replace(
        listing,
        owned=replace(owned, ownerships=ownerships),
        present=replace(present, members=members),
    )


def test_the_order_of_records_in_a_listing_changes_nothing(cycles):
    """Stores list in any order, and two processors must decide alike."""
    rng = Random(0)
    assert cycles
    for cycle in cycles:
        _, actions = cycle.decided()
        _, again = replace(cycle, listing=shuffled(cycle.listing, rng)).decided()

        assert sorted(actions.forgotten, key=str) == sorted(again.forgotten, key=str)
        assert replace(actions, forgotten=()) == replace(again, forgotten=())


def test_a_cycle_writes_only_what_it_may(cycles):
    """Each claim is planned or recorded as the processor's own, and each record written once."""
    for cycle in cycles:
        memory, actions = cycle.decided()
        group = memory.group
        me, live = group.owner_id, group.live_owner_by_partition
        claimed = [claim.partition_id for claim in actions.moves.taken]
        given = {
            claim.partition_id for claim in actions.transfers
        } | actions.moves.hand_overs.keys()

        assert len(claimed) == len(set(claimed))
        assert not given & set(claimed)
        assert given <= group.mine
        assert not group.held & set(claimed)
        assert all(live.get(claim.partition_id, me) == me for claim in actions.moves.claims)
        for p in claimed:
            assert actions.plan.owner_by_partition.get(p) == me or group.recorded_owner(p) == me


def test_a_cycle_writes_nothing_that_its_status_or_strategy_excludes(cycles):
    """A leaving processor claims nothing, and ``BALANCED`` one partition at most."""
    for cycle in cycles:
        memory, actions = cycle.decided()
        group = memory.group
        new = [
            c
            for c in actions.moves.claims
            if group.recorded_owner(c.partition_id) != group.owner_id
        ]

        if cycle.listing.own.member.status is MemberStatus.LEAVING:
            assert not actions.moves.claims
            assert actions.moves.steal is None
        if cycle.rules.strategy is LoadBalancingStrategy.BALANCED:
            assert len(new) + (actions.moves.steal is not None) <= 1
        if group.is_unsure:
            assert not new
            assert actions.moves.steal is None
