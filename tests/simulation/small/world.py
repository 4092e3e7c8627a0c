"""A small world: what one situation may cost is checked against what it has to cost."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from random import Random

from eventproc import LoadBalancingStrategy, PartitionHandler
from eventproc._core.placement.even import Even
from eventproc._core.placement.placement import MemberFacts
from eventproc._core.placement.published import Published
from eventproc.models import Member, MemberStatus
from eventproc.ports import EventSource
from eventproc.testing import StoreFaults
from tests.simulation.actor import Actor
from tests.simulation.azure.processor import ClientProfile
from tests.simulation.azure.rule import Decision, ObservedGroup
from tests.simulation.invariants import Violation
from tests.simulation.moves import fewest_moves
from tests.simulation.nodes import CheckedNode
from tests.simulation.small.handlers import SmallHandler, SmallKeyedHandler
from tests.simulation.small.invariants import SmallInvariants, SmallLaneInvariants
from tests.simulation.small.snapshots import Cost, Shares
from tests.simulation.small.sources import CountedSource, EarlySource
from tests.simulation.world import World

PLANNED_S = 9.0
"""Within so many seconds a planned change is over, without any lease that expires."""

LOOK_S = 0.25

QUICK_S = 0.1

POLL_FACTOR_MAX = 1.2
"""A pause between polls is at most a tenth longer than its interval, and a clock may run slow."""

REQUESTS_MAX = 4
"""So many requests one after another has a cycle at most."""

BUSY_S = 0.3
"""Seconds for each event in a situation in which handlers are busy."""

STARTED_S = 1.0
"""Within so many seconds the pump of a new owner delivers."""

CAUGHT_UP_S = 60.0
"""Seconds, apart from those that handlers take for all events that were published."""


class SmallWorld(World):
    """A world with few processors and partitions."""

    invariants_class = SmallInvariants
    invariants: SmallInvariants
    deployment_id = ""
    letter = "n"
    """A letter in the owner ids of foreign members, on whose hashes the plan depends."""

    is_early = False
    """Whether receivers begin before the position that they were asked for."""

    fails = False
    """Whether handlers fail now and then, so that events are delivered again."""

    usual_faults = StoreFaults()
    usual_seconds_per_event = 0.0

    @property
    def is_cooperative(self) -> bool:
        """Whether owners hand over or release what the plan takes from them."""
        return self.config.load_balancing_strategy.lets_go

    @property
    def is_quick(self) -> bool:
        """Whether requests to the store take little time."""
        return self.usual_faults.delay_max.total_seconds() < QUICK_S

    @property
    def cycle_s(self) -> float:
        """The longest time from one cycle to the next while something has to change; a cycle reads
        both kinds of records and writes at most both."""
        return POLL_FACTOR_MAX * self.config.rebalance_interval.total_seconds() + self.requests_s

    @property
    def requests_s(self) -> float:
        """The longest time that the requests of one cycle take, while the store works."""
        return REQUESTS_MAX * self.usual_faults.delay_max.total_seconds()

    @property
    def polled_s(self) -> float:
        """The longest time until a processor has polled, and acted on what it read."""
        return POLL_FACTOR_MAX * self.interval_s + 2 * self.requests_s

    def may_not_have_polled(self, node: CheckedNode) -> bool:
        """Whether a processor may not have polled since a situation delayed or lost its requests.

        It polls again only when it has the answer of the last one, or gives up.
        """
        return node.connection.faulty_until_s + self.polled_s > self.now_s

    def further_s(self, before: Shares, left: str) -> float:
        """The longest time that the others need after their first claims, when one has left.

        ``BALANCED`` claims or steals once in a cycle, and every strategy without a hand-over steals
        once in a cycle. Only a placement that is not sticky asks for steals then. The former owner
        stops when it polls; nothing has to change for that one, so it polls seldom.
        """
        if self.is_cooperative:
            return 0.0
        if self.config.placement == Even():
            claimed, stolen = Counter({"one of them": before.counts[left]}), Counter[str]()
        else:
            planned = self.planned(before.owners).items()
            claimed = Counter(owner_id for p, owner_id in planned if before.owners[p] == left)
            stolen = Counter(
                owner_id for p, owner_id in planned if before.owners[p] not in {left, owner_id}
            )
        is_single = self.config.load_balancing_strategy is LoadBalancingStrategy.BALANCED
        cycle_counts = claimed + stolen if is_single else stolen
        further_count = max(0, max(cycle_counts.values(), default=0) - 1)
        return further_count * self.cycle_s + (self.polled_s if stolen else 0.0)

    @property
    def expiration_s(self) -> float:
        return self.config.ownership_expiration.total_seconds()

    @property
    def interval_s(self) -> float:
        return self.config.load_balancing_interval.total_seconds()

    @property
    def shutdown_s(self) -> float:
        return self.config.shutdown_timeout.total_seconds()

    def _draw_rate(self) -> float:
        """Clocks differ as much as they may, or not at all."""
        return 1 + self.rng.choice([-1, 0, 1]) * self._clock_rate_max

    def facts_of(self, owner_id: str) -> MemberFacts:
        """Without a capacity: each situation expects every partition to have an owner."""
        return replace(super().facts_of(owner_id), capacity=None)

    def handled_count(self, partition_id: str, number: int) -> int:
        """Return how often an event was handled."""
        counts: Mapping[int, int] = self.invariants.handled.get(partition_id, {})
        return counts.get(number, 0)

    def make_handler(self, actor: Actor) -> PartitionHandler:
        return SmallHandler(actor, self.behaviour, self.invariants, self.rng)

    def make_source(self) -> EventSource:
        make = EarlySource if self.is_early else CountedSource
        return make(self.hub, self.invariants.opened)

    def join(self, count: int = 1) -> list[CheckedNode]:
        """Start processors of the newest deployment."""
        return [
            self.start(f"n{len(self.nodes)}", deployment_id=self.deployment_id)
            for _ in range(count)
        ]

    def start_lazy(self, *partition_ids: str) -> CheckedNode:
        """Start a foreign member that claims these partitions, and never another one."""

        def claim_these(seen: ObservedGroup, _: Random) -> Decision:
            return Decision(claims=tuple(p for p in partition_ids if p not in seen.mine))

        owner_id = f"lazy-{self.letter}{len(self.nodes)}"
        return self.start_foreign(owner_id, ClientProfile(rule=claim_these))

    def stale_members(self) -> list[str]:
        """Return the processors that own nothing, and whose member record expired."""
        members, oldest = self.records().member_by_owner, self.store_now()
        oldest -= self.config.ownership_expiration
        return [
            owner_id
            for owner_id, count in self.owned_counts().items()
            if count == 0
            and not self.node(owner_id).actor.is_foreign
            and (owner_id not in members or members[owner_id].last_modified < oldest)
        ]

    def orphaned(self) -> list[str]:
        """Return the partitions without a live owner that no owner released for another one."""
        records, live = self.records().ownership_by_partition, self.live_records()
        releases = self.config.load_balancing_strategy is LoadBalancingStrategy.RELEASE
        return [
            p
            for p in self.hub.partition_ids()
            if p not in live and not (releases and p in records and records[p].owner_id is None)
        ]

    @property
    def ours(self) -> list[CheckedNode]:
        """The processors that should own a share, without foreign members."""
        return [node for node in self.there if not node.actor.is_foreign]

    def had_rival(self, node: CheckedNode) -> bool:
        """Whether another process had its owner id, now or before."""
        return sum(other.owner_id == node.owner_id for other in self.nodes) > 1

    def choose(self, rng: Random) -> CheckedNode:
        """Return a processor that should own a share, and has started unless none has."""
        return rng.choice([node for node in self.ours if node.has_started] or self.ours)

    # What it costs.

    def cost(self) -> Cost:
        """Return what happened so far."""
        return Cost(
            self.invariants.duplicate_count,
            self.invariants.stolen_count,
            self.invariants.restart_count,
        )

    def expect(self, is_so: object, what: str) -> None:
        """Raise a violation unless something is so."""
        if not is_so:
            raise Violation(f"{self.now_s:.3f} {what}: {self.describe()}")

    def expect_free(self, before: Cost, what: str) -> None:
        """Check that since *before* nothing was stolen, restarted or delivered again."""
        if self.invariants.is_mixed:
            return  # A foreign member steals, and its checkpoints may go back.
        after = self.cost()
        stolen_count = after.stolen_count - before.stolen_count
        duplicate_count = after.duplicate_count - before.duplicate_count
        restart_count = after.restart_count - before.restart_count
        self.expect(not stolen_count, f"{what}: {stolen_count} steals")
        if not self.fails:
            self.expect(not duplicate_count, f"{what}: {duplicate_count} events came twice")
            self.expect(not restart_count, f"{what}: {restart_count} pumps were made again")

    def is_taken(self, owners: Mapping[str, str | None]) -> bool:
        """Whether the plan takes from a present processor what it owns.

        After a leave that happens with a placement that is not sticky, and with weights: of those
        that stay, a heavy one may be due more partitions than the one that left had.
        """
        planned, there = self.planned(owners), {node.owner_id for node in self.there}
        return any(owner in there and planned.get(p) != owner for p, owner in owners.items())

    def expect_free_leave(self, before: Cost, shares: Shares, what: str) -> None:
        """Check that a leave cost nothing, unless the plan then takes from others what they hold.

        Without a hand-over that is stolen.
        """
        if self.is_cooperative or not self.is_taken(shares.owners):
            self.expect_free(before, what)

    def expect_nothing_taken(self, actor: Actor, what: str) -> None:
        """Check that a process wrote over no record of another one with its owner id."""
        taken = [p for writer, p in self.invariants.taken if writer is actor]
        self.expect(not taken, f"{what} changed records of {taken}")

    @property
    def publishing_s(self) -> float:
        """How much longer a change takes if a leader has to publish the plan first.

        It publishes in its next cycle, the others read that in theirs, and wait for one more.
        """
        return 3 * self.cycle_s if isinstance(self.config.placement, Published) else 0.0

    async def settle(self, what: str, within_s: float = PLANNED_S) -> None:
        """Wait until the group is balanced, and served."""
        began_s, within_s = self.now_s, within_s + self.publishing_s
        while not self.is_settled:
            self.expect(self.now_s - began_s <= within_s, f"{what}: not balanced in {within_s} s")
            await asyncio.sleep(LOOK_S)

    @property
    def is_settled(self) -> bool:
        """Whether the group is balanced, and all its processors are members, and no others.

        A processor that died and owns nothing is one until its record expires, and may be given
        what another one has.
        """
        members = self.records().member_by_owner
        return (
            self.is_balanced
            and all(node.owner_id in members for node in self.ours)
            and not any(map(self._is_ghost, members.values()))
        )

    def _is_ghost(self, member: Member) -> bool:
        oldest = self.store_now() - self.config.ownership_expiration
        return (
            member.status is not MemberStatus.LEAVING
            and member.last_modified is not None
            and member.last_modified >= oldest
            and all(node.owner_id != member.owner_id for node in self.there)
        )

    async def catch_up(self) -> None:
        """Wait until nothing of earlier situations is delivered again.

        When a call has ended that outlived its lease, its pump is made again a moment later.
        """
        await self.settle("before")
        began_s = calm_since_s = self.now_s
        while self.now_s - calm_since_s < STARTED_S:
            await asyncio.sleep(LOOK_S)
            if not (self.is_settled and self.invariants.is_caught_up):
                calm_since_s = self.now_s
            count = sum(len(self.hub.events(p)) for p in self.hub.partition_ids())
            limit_s = CAUGHT_UP_S + self.usual_seconds_per_event * count
            waited_s = calm_since_s - began_s
            self.expect(waited_s <= limit_s, "events are delivered again and again")

    def shares(self) -> Shares:
        """Return the owners of partitions, to count the moves from here."""
        self.invariants.moves.clear()
        return Shares(
            dict.fromkeys(self.hub.partition_ids()) | self.owner_by_partition(),
            self.owned_counts(),
        )

    def expect_fewest_moves(self, before: Shares, what: str, late: Collection[str] = ()) -> None:
        """Check that no more partitions moved than had to, and none twice.

        If some were so *late* that the plan without them may have been carried out, that is said of
        each of the two plans.
        """
        moves, most = self.invariants.moves, 1
        least = self._fewest_moves(before, late)
        if late:
            owners, most = self.planned(before.owners, late), 2
            counts = Counter(owners.values())
            there = [n for n in self.owned_counts() if n not in late]
            least += self._fewest_moves(Shares(owners, {n: counts[n] for n in there}))
        self.expect(
            moves.total() <= least and max(moves.values(), default=0) <= most,
            f"{what}: moves {dict(moves)}, {least} are enough from {before.owners}",
        )

    def _fewest_moves(self, before: Shares, without: Collection[str] = ()) -> int:
        if self.config.placement == Even():
            there = [n for n in self.owned_counts() if n not in without]
            staying = {n: before.counts[n] for n in there if n in before.counts}
            return fewest_moves(before.owners, staying, set(there) - staying.keys())
        planned = self.planned(before.owners, without)
        return sum(before.owners[p] != owner_id for p, owner_id in planned.items())

    def clean_up(self) -> None:
        self.heal()  # A handler that ignores cancellation would never end.
        super().clean_up()

    def heal(self) -> None:
        """End every fault of the store and of handlers."""
        self.set_faults(self.usual_faults)
        for node in self.nodes:
            node.connection.is_out = False
            node.connection.fate = None
            if node.process.is_paused and not node.process.is_killed:
                node.process.resume()
        self.behaviour.seconds_per_event = self.usual_seconds_per_event
        self.behaviour.ignores_cancellation = False
        self.invariants.healed()


class SmallLanesWorld(SmallWorld):
    """The same with key lanes."""

    invariants_class = SmallLaneInvariants

    def make_handler(self, actor: Actor) -> PartitionHandler:
        return SmallKeyedHandler(actor, self.behaviour, self.invariants, self.rng)


async def two_processors(world: SmallWorld) -> None:
    """Have at least two processors."""
    await world.catch_up()
    if len(world.ours) < 2:
        world.join()
        await world.settle("two")
        await world.catch_up()
