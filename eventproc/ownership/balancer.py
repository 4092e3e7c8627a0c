"""One cycle of the ownership half: read the group's records, decide, write.

It runs on the store's loop. ``runtime/run.py`` passes its result to the pumps.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from eventproc.config import EventProcessorConfig
from eventproc.core.balance import (
    Actions,
    GroupView,
    MembershipObservation,
    decide,
    due_since_s,
    observe_members,
)
from eventproc.core.lease import Observation, live_owners, observe, present_members
from eventproc.core.standby import active_members
from eventproc.logs import Logger
from eventproc.models import (
    ClaimResult,
    ConsumerGroup,
    LeaseMode,
    LoadBalancingStrategy,
    Member,
    MembershipSnapshot,
    MemberStatus,
    OwnershipClaim,
    OwnershipSnapshot,
    PartitionOwnership,
    WriteOutcome,
)
from eventproc.ownership.leases import Leases
from eventproc.ownership.membership import Membership
from eventproc.ownership.session_mode import SessionLeases
from eventproc.ports import CheckpointStore

OUTAGE_EXPIRATION_FRACTION = 0.5
"""A store that did not answer for this part of the expiration had an outage."""

GRACE_INTERVALS = 2
"""After an outage, for how many load-balancing intervals no member is considered dead, so that
each has time to renew."""

STABLE_AFTER_CYCLES = 0.8
"""How many rebalance intervals a membership must last before this processor acts on it: two polls
then showed the same members, and members that joined at the same time have seen each other."""

UNSTABLE_CYCLES_MAX = 4
"""How many rebalance intervals this processor waits at most, if the members keep changing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Where the partitions of a leaving processor go."""

    targets: Mapping[str, str | None]
    """The new owner of each partition that it holds; ``None`` to release the partition."""

    has_others: bool
    """Whether the group has other members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleResult:
    """What one cycle found and did."""

    moves: Actions
    claimed: tuple[str, ...]
    stolen: tuple[str, ...]
    conflict_count: int
    """How many claims another processor won."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """What one poll of the group showed."""

    ownership_by_partition: Mapping[str, PartitionOwnership]
    live_owner_by_partition: Mapping[str, str]
    held: frozenset[str]
    members: Sequence[Member]
    """The live members."""


class Balancer:
    """Reads the group, computes the plan, and writes this processor's part of it."""

    def __init__(
        self,
        store: CheckpointStore,
        group: ConsumerGroup,
        owner_id: str,
        *,
        leases: Leases,
        membership: Membership,
        config: EventProcessorConfig,
        clock: Callable[[], float],
        log: Logger,
    ) -> None:
        self._store = store
        self._group = group
        self._owner_id = owner_id
        self._leases = leases
        self._membership_record = membership
        self._config = config
        self._clock = clock
        self._log = log
        self._observations: dict[str, Observation] = {}
        self._due_since_s: dict[tuple[str, str], float] = {}
        self._awaiting_since_s: dict[str, float] = {}
        self._membership: MembershipObservation | None = None
        self._last: CycleResult | None = None
        self._sessions: SessionLeases | None = None
        if config.lease_mode is LeaseMode.SESSION:
            self._sessions = SessionLeases(store, group, owner_id, config=config, log=log)
        self._read_at_s: float | None = None
        self._grace_until_s = float("-inf")
        self._cycle_lock = asyncio.Lock()
        self._is_leaving = False
        self._has_unknown_claims = False
        """Whether the outcome of the newest claims is unknown."""

    async def cycle(
        self, partition_ids: Collection[str], busy: Collection[str], running: Collection[str]
    ) -> CycleResult:
        """Run one cycle.

        Args:
            partition_ids: All partitions of the hub, as last read.
            busy: Partitions that are being handed over; they count as held until that is done.
            running: Partitions whose handler may still run, even if the lease is lost.

        Raises:
            StoreUnavailableError: the group could not be read; nothing was written.
            DuplicateOwnerError: another processor has taken this one's owner id.
        """
        async with self._cycle_lock:
            present = await self._store.list_members(self._group)
            if self._is_unchanged(present, partition_ids, busy):
                return await self._cycle_without_ownership(present)
            present, owned = await self._read(present)
            group = self._observe(present, owned, busy)
            view = self._view(partition_ids, busy, group)
            await self._membership_record.refresh(
                present,
                owns_something=self._owner_id in view.live_owner_by_partition.values(),
                is_trusted=self._leases.is_any_trusted,
            )
            moves = decide(view, self._config.load_balancing_strategy)
            now_s = self._clock()
            self._awaiting_since_s = {
                p: self._awaiting_since_s.get(p, now_s) for p in moves.awaiting_claim
            }
            self._due_since_s = due_since_s(
                self._due_since_s, moves.owner_by_partition, view, now_s
            )
            await self._membership_record.end_standby(
                group.members, has_replaced=bool(view.held) and moves.is_balanced
            )
            await self._membership_record.forget(present, view.live_owner_by_partition.values())
            done = await self._carry_out(moves, view, running)
            self._note_poll(done, present, partition_ids)
            return done

    async def announce_leaving(
        self, partition_ids: Collection[str], running: Collection[str]
    ) -> Departure:
        """Write the status *leaving*; return where each partition goes that is held."""
        self._is_leaving = True
        async with self._cycle_lock:  # A cycle under way finishes first; it may win a claim.
            await self._membership_record.leave()
            present, owned = await self._read(await self._store.list_members(self._group))
            group = self._observe(present, owned, ())
            view = self._view(partition_ids, (), group, is_leaving=True)
            moves = decide(view, self._config.load_balancing_strategy)
            mine = [
                p for p, owner in view.live_owner_by_partition.items() if owner == self._owner_id
            ]
            targets = {p: moves.hand_overs.get(p) for p in mine}
            await self._transfer_unstarted(targets, view, running)
            return Departure(
                targets={p: targets[p] for p in view.held}, has_others=bool(view.members)
            )

    async def deregister(self, running: Collection[str]) -> None:
        """Release what is left and delete the member record: the last step of leaving.

        The record stays if one of our handlers may still run. Its status is *leaving*, so other
        members wait for ``handoff_timeout`` before they steal from this processor.
        """
        if await self._leases.release_remaining(running):
            await self._membership_record.withdraw()

    async def _read(
        self, present: MembershipSnapshot
    ) -> tuple[MembershipSnapshot, OwnershipSnapshot]:
        """Read ownership after members: a processor that starts is then seen in one at least."""
        asked_at_s = self._clock()
        owned = await self._store.list_ownership(self._group)
        now_s = self._clock()
        self._note_answer(now_s)
        await self._leases.compare(owned, asked_at_s)
        if self._sessions is not None:
            if not self._is_grace(now_s):
                present = await self._sessions.fence_silent(present, owned)
            self._leases.renews_records = self._sessions.has_foreign_members(present, owned)
        return present, owned

    def _note_answer(self, now_s: float) -> None:
        """After an outage, start a grace in which no member is dead and no hand-over overdue."""
        if self._read_at_s is not None:
            outage_s = OUTAGE_EXPIRATION_FRACTION * self._config.ownership_expiration
            if now_s - self._read_at_s > outage_s.total_seconds():
                grace = GRACE_INTERVALS * self._config.load_balancing_interval
                self._grace_until_s = now_s + grace.total_seconds()
                self._due_since_s, self._awaiting_since_s = {}, {}
                self._log.warning("outage_ended", silent_s=round(now_s - self._read_at_s, 3))
        self._read_at_s = now_s

    def _is_unchanged(
        self, present: MembershipSnapshot, partition_ids: Collection[str], busy: Collection[str]
    ) -> bool:
        """Whether the member records alone show that there is nothing to do."""
        return (
            self._sessions is not None
            and not busy
            and self._sessions.is_unchanged(
                present, partition_ids, self._leases.held, self._clock()
            )
        )

    async def _cycle_without_ownership(self, present: MembershipSnapshot) -> CycleResult:
        self._note_answer(self._clock())
        await self._membership_record.refresh(
            present, owns_something=True, is_trusted=self._leases.is_any_trusted
        )
        assert self._last is not None, "a full cycle came before"
        return replace(self._last, claimed=(), stolen=(), conflict_count=0)

    def _note_poll(
        self, done: CycleResult, present: MembershipSnapshot, partition_ids: Collection[str]
    ) -> None:
        self._last = done
        if self._sessions is not None:
            is_stable = done.moves.is_balanced and not self._is_grace(self._clock())
            self._sessions.note_poll(
                present,
                partition_ids,
                self._leases.held,
                self._clock(),
                is_stable=is_stable and not self._leases.renews_records,
            )

    # The input of the plan.

    def _observe(
        self, present: MembershipSnapshot, owned: OwnershipSnapshot, busy: Collection[str]
    ) -> _Group:
        """Determine the live members and what each of them owns."""
        live = self._live(present, owned, self._clock())
        held = self._leases.held | frozenset(busy)
        live.update(dict.fromkeys(held, self._owner_id))
        members = present_members(
            present.members,
            as_of=present.as_of,
            resolution=present.resolution,
            expiration=self._config.ownership_expiration,
            owners=live.values(),
        )
        return _Group(
            ownership_by_partition={o.partition_id: o for o in owned.ownerships},
            live_owner_by_partition=live,
            held=held,
            members=members,
        )

    def _live(
        self, present: MembershipSnapshot, owned: OwnershipSnapshot, now_s: float
    ) -> dict[str, str]:
        is_grace = self._is_grace(now_s)
        if self._sessions is not None:
            return self._sessions.live_owners(present, owned, now_s, is_after_outage=is_grace)
        if owned.as_of is None:
            self._observations = observe(self._observations, owned.ownerships, now_s)
        return live_owners(
            owned,
            self._observations,
            expiration=self._config.ownership_expiration,
            now_s=now_s,
            is_after_outage=is_grace,
        )

    def _is_grace(self, now_s: float) -> bool:
        return now_s < self._grace_until_s

    def _view(
        self,
        partition_ids: Collection[str],
        busy: Collection[str],
        group: _Group,
        *,
        is_leaving: bool = False,
    ) -> GroupView:
        """Build the input of ``decide``."""
        live, members = group.live_owner_by_partition, group.members
        owner_ids = {self._owner_id, *live.values(), *(member.owner_id for member in members)}
        leaving = {member.owner_id for member in members if member.is_leaving}
        leaving = leaving | {self._owner_id} if is_leaving else leaving - {self._owner_id}
        cooperative = {member.owner_id for member in members if member.hands_over}
        if self._config.load_balancing_strategy is LoadBalancingStrategy.COOPERATIVE:
            cooperative.add(self._owner_id)
        active = active_members(
            len(partition_ids),
            live,
            owner_ids - leaving,
            {m.owner_id for m in members if m.status is MemberStatus.STANDBY},
        )
        now_s, patience_s = self._clock(), self._config.handoff_timeout.total_seconds()
        return GroupView(
            owner_id=self._owner_id,
            partition_ids=tuple(partition_ids),
            ownership_by_partition=group.ownership_by_partition,
            live_owner_by_partition=live,
            members=active,
            cooperative=frozenset(cooperative),
            held=group.held,
            overdue=frozenset(
                p
                for (p, keeper), since_s in self._due_since_s.items()
                if live.get(p) == keeper and now_s - since_s > patience_s
            ),
            leaving=frozenset(leaving),
            present=frozenset(m.owner_id for m in members),
            unclaimed=frozenset(
                p for p, since_s in self._awaiting_since_s.items() if now_s - since_s > patience_s
            ),
            handing_over=frozenset(busy),
            is_unstable=not is_leaving and self._is_unstable(active, now_s),
        )

    def _is_unstable(self, members: frozenset[str], now_s: float) -> bool:
        """Whether the membership changed too recently to act on it."""
        rebalance_s = self._config.rebalance_interval.total_seconds()
        stable_after_s = STABLE_AFTER_CYCLES * rebalance_s
        self._membership = observe_members(
            self._membership, members, now_s, stable_after_s=stable_after_s
        )
        return self._membership.is_unstable(
            now_s, stable_after_s=stable_after_s, wait_max_s=UNSTABLE_CYCLES_MAX * rebalance_s
        )

    async def _carry_out(
        self, moves: Actions, view: GroupView, running: Collection[str]
    ) -> CycleResult:
        """Claim and steal, unless this processor is leaving; return the outcome."""
        acquisitions = [*moves.claims, *([moves.steal] if moves.steal else [])]
        if self._is_leaving:
            acquisitions = []
        results = await self._leases.claim(acquisitions) if acquisitions else []
        won = {r.claim.partition_id for r in results if r.outcome is WriteOutcome.WON}
        await self._transfer_unstarted(moves.hand_overs, view, running)
        self._report(results)
        return CycleResult(
            moves=moves,
            claimed=tuple(c.partition_id for c in moves.claims if c.partition_id in won),
            stolen=tuple(
                c.partition_id for c in [moves.steal] if c is not None and c.partition_id in won
            ),
            conflict_count=sum(r.outcome is WriteOutcome.LOST for r in results),
        )

    async def _transfer_unstarted(
        self, targets: Mapping[str, str | None], view: GroupView, running: Collection[str]
    ) -> None:
        """Hand over or release at once what is recorded as ours but has no pump to drain."""
        at_work = view.held.union(running)
        unstarted = [
            OwnershipClaim(
                partition_id=p,
                owner_id=target,
                expected_etag=view.ownership_by_partition[p].etag,
            )
            for p, target in targets.items()
            if p not in at_work and p in view.ownership_by_partition
        ]
        if unstarted:
            await self._store.claim_ownership(self._group, unstarted)

    def _report(self, results: Collection[ClaimResult]) -> None:
        unknown = [r.claim.partition_id for r in results if r.outcome is WriteOutcome.UNKNOWN]
        if unknown and not self._has_unknown_claims:
            self._log.warning("claim_outcome_unknown", partition_ids=unknown)
        elif results and not unknown and self._has_unknown_claims:
            self._log.info("claim_recovered")
        if results:
            self._has_unknown_claims = bool(unknown)
