"""One look at the group: read, decide, write.

Everything that a processor does about ownership in one cycle, on the control side. What to do
about it with pumps is the processor's business.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from eventproc.config import EventProcessorConfig
from eventproc.core.balance import (
    MembershipSighting,
    Moves,
    View,
    decide,
    due_since_s,
    see_members,
)
from eventproc.core.lease import Sighting, live_owners, present_members, sight
from eventproc.core.reserve import taking_part
from eventproc.leases import Leases
from eventproc.logs import Logger
from eventproc.membership import LeaseMode, Member, MembershipSnapshot, MemberStatus
from eventproc.models import (
    ClaimResult,
    ConsumerGroup,
    LoadBalancingStrategy,
    OwnershipClaim,
    OwnershipSnapshot,
    PartitionOwnership,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore
from eventproc.presence import Presence
from eventproc.sessions import SessionGroup

OUTAGE_EXPIRATION_FRACTION = 0.5
"""Without an answer for this part of the expiration, there was an outage."""

GRACE_INTERVALS = 2
"""After an outage, how many intervals everybody has to renew before anybody is called dead."""

SETTLED_AFTER_CYCLES = 0.8
"""How many unsettled intervals a membership must have lasted to be acted upon: it was then the
same at two looks, and whoever wrote presence at the same time has seen it, too."""

SETTLING_CYCLES_MAX = 4
"""In a group whose members change all the time, action waits for no more than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Farewell:
    """What becomes of a leaver's partitions."""

    targets: Mapping[str, str | None]
    """Who shall have each; ``None`` where it is to be released."""

    has_others: bool
    """Whether anybody else is there to take them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one cycle found and did."""

    moves: Moves
    claimed: tuple[str, ...]
    stolen: tuple[str, ...]
    conflict_count: int
    """Claims that somebody else won."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """What one look at the group showed."""

    ownership_by_partition: Mapping[str, PartitionOwnership]
    live_owner_by_partition: Mapping[str, str]
    held: frozenset[str]
    members: Sequence[Member]
    """Those that are there."""


class Balancer:
    """Reads the group, decides by the plan, and writes this processor's lines of it."""

    def __init__(
        self,
        store: CheckpointStore,
        group: ConsumerGroup,
        owner_id: str,
        *,
        leases: Leases,
        presence: Presence,
        config: EventProcessorConfig,
        clock: Callable[[], float],
        log: Logger,
    ) -> None:
        self._store = store
        self._group = group
        self._owner_id = owner_id
        self._leases = leases
        self._presence = presence
        self._config = config
        self._clock = clock
        self._log = log
        self._sightings: dict[str, Sighting] = {}
        self._due_since_s: dict[tuple[str, str], float] = {}
        self._awaited_since_s: dict[str, float] = {}
        self._membership: MembershipSighting | None = None
        self._last: Round | None = None
        self._sessions: SessionGroup | None = None
        if config.lease_mode is LeaseMode.SESSION:
            self._sessions = SessionGroup(store, group, owner_id, config=config, log=log)
        self._read_at_s: float | None = None
        self._grace_until_s = float("-inf")
        self._looking = asyncio.Lock()
        self._is_leaving = False
        self._is_unclear = False
        """Whether the newest claims got no answer."""

    async def cycle(
        self, partition_ids: Collection[str], busy: Collection[str], running: Collection[str]
    ) -> Round:
        """Do one cycle.

        Args:
            partition_ids: All partitions of the hub, as last read.
            busy: Partitions that are being handed over; they count as held until that is done.
            running: Partitions whose handler may be at work, though the lease is lost.

        Raises:
            StoreUnavailableError: the group could not be read; nothing was written.
            DuplicateOwnerError: this processor's id was taken while it was away.
        """
        async with self._looking:
            present = await self._store.list_members(self._group)
            if self._is_quiet(present, partition_ids, busy):
                return await self._look_no_further(present)
            present, owned = await self._read(present)
            group = self._sight(present, owned, busy)
            view = self._view(partition_ids, busy, group)
            await self._presence.refresh(
                present,
                owns_something=self._owner_id in view.live_owner_by_partition.values(),
                is_trusted=self._leases.is_any_trusted,
            )
            moves = decide(view, self._config.load_balancing_strategy)
            now_s = self._clock()
            self._awaited_since_s = {p: self._awaited_since_s.get(p, now_s) for p in moves.awaited}
            self._due_since_s = due_since_s(
                self._due_since_s, moves.owner_by_partition, view, now_s
            )
            await self._presence.end_reserve(
                group.members, has_settled=bool(view.held) and moves.is_settled
            )
            await self._presence.forget(present, view.live_owner_by_partition.values())
            done = await self._carry_out(moves, view, running)
            self._note_look(done, present, partition_ids)
            return done

    async def farewell(self, partition_ids: Collection[str], running: Collection[str]) -> Farewell:
        """Tell everybody that this processor leaves; return who shall have what it holds."""
        self._is_leaving = True
        async with self._looking:  # A look under way goes on, and may still win a claim.
            await self._presence.leave()
            present, owned = await self._read(await self._store.list_members(self._group))
            group = self._sight(present, owned, ())
            view = self._view(partition_ids, (), group, is_leaving=True)
            moves = decide(view, self._config.load_balancing_strategy)
            mine = [
                p for p, owner in view.live_owner_by_partition.items() if owner == self._owner_id
            ]
            targets = {p: moves.hand_overs.get(p) for p in mine}
            await self._give_untouched(targets, view, running)
            return Farewell(
                targets={p: targets[p] for p in view.held}, has_others=bool(view.members)
            )

    async def part(self, running: Collection[str]) -> None:
        """Take the presence back at the very end, unless a handler of ours may be at work.

        Who is seen to leave is not robbed at once.
        """
        if await self._leases.release_rest(running):
            await self._presence.withdraw()

    async def _read(
        self, present: MembershipSnapshot
    ) -> tuple[MembershipSnapshot, OwnershipSnapshot]:
        """Read ownership after presence: a newcomer is seen in one of them at least."""
        asked_at_s = self._clock()
        owned = await self._store.list_ownership(self._group)
        now_s = self._clock()
        self._note_answer(now_s)
        await self._leases.compare(owned, asked_at_s)
        if self._sessions is not None:
            if not self._is_grace(now_s):
                present = await self._sessions.declare_dead(present, owned)
            self._leases.renews_records = self._sessions.has_strangers(present, owned)
        return present, owned

    def _note_answer(self, now_s: float) -> None:
        """The store answered: if it had not for long, nobody is called dead or late for a while."""
        if self._read_at_s is not None:
            outage_s = OUTAGE_EXPIRATION_FRACTION * self._config.ownership_expiration
            if now_s - self._read_at_s > outage_s.total_seconds():
                grace = GRACE_INTERVALS * self._config.load_balancing_interval
                self._grace_until_s = now_s + grace.total_seconds()
                self._due_since_s, self._awaited_since_s = {}, {}
                self._log.warning("outage_ended", silent_s=round(now_s - self._read_at_s, 3))
        self._read_at_s = now_s

    def _is_quiet(
        self, present: MembershipSnapshot, partition_ids: Collection[str], busy: Collection[str]
    ) -> bool:
        """Whether the presence records alone tell that nothing has to be done."""
        return (
            self._sessions is not None
            and not busy
            and self._sessions.is_as_before(
                present, partition_ids, self._leases.held, self._clock()
            )
        )

    async def _look_no_further(self, present: MembershipSnapshot) -> Round:
        self._note_answer(self._clock())
        await self._presence.refresh(
            present, owns_something=True, is_trusted=self._leases.is_any_trusted
        )
        assert self._last is not None, "there was a look before"
        return replace(self._last, claimed=(), stolen=(), conflict_count=0)

    def _note_look(
        self, done: Round, present: MembershipSnapshot, partition_ids: Collection[str]
    ) -> None:
        self._last = done
        if self._sessions is not None:
            is_at_rest = done.moves.is_settled and not self._is_grace(self._clock())
            self._sessions.note_look(
                present,
                partition_ids,
                self._leases.held,
                self._clock(),
                is_at_rest=is_at_rest and not self._leases.renews_records,
            )

    # What the plan is made from.

    def _sight(
        self, present: MembershipSnapshot, owned: OwnershipSnapshot, busy: Collection[str]
    ) -> _Group:
        """Who is alive, and what does each of them own?"""
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
            self._sightings = sight(self._sightings, owned.ownerships, now_s)
        return live_owners(
            owned,
            self._sightings,
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
    ) -> View:
        """What the plan is made from."""
        live, members = group.live_owner_by_partition, group.members
        everybody = {self._owner_id, *live.values(), *(member.owner_id for member in members)}
        leaving = {member.owner_id for member in members if member.is_leaving}
        leaving = leaving | {self._owner_id} if is_leaving else leaving - {self._owner_id}
        cooperative = {member.owner_id for member in members if member.hands_over}
        if self._config.load_balancing_strategy is LoadBalancingStrategy.COOPERATIVE:
            cooperative.add(self._owner_id)
        standing = taking_part(
            len(partition_ids),
            live,
            everybody - leaving,
            {m.owner_id for m in members if m.status is MemberStatus.RESERVE},
        )
        now_s, patience_s = self._clock(), self._config.handoff_timeout.total_seconds()
        return View(
            owner_id=self._owner_id,
            partition_ids=tuple(partition_ids),
            ownership_by_partition=group.ownership_by_partition,
            live_owner_by_partition=live,
            members=standing,
            cooperative=frozenset(cooperative),
            held=group.held,
            overdue=frozenset(
                p
                for (p, keeper), since_s in self._due_since_s.items()
                if live.get(p) == keeper and now_s - since_s > patience_s
            ),
            leaving=frozenset(leaving),
            present=frozenset(m.owner_id for m in members),
            neglected=frozenset(
                p for p, since_s in self._awaited_since_s.items() if now_s - since_s > patience_s
            ),
            handing_over=frozenset(busy),
            is_settling=not is_leaving and self._is_settling(standing, now_s),
        )

    def _is_settling(self, members: frozenset[str], now_s: float) -> bool:
        """Whether the membership is too new to be acted upon."""
        unsettled_s = self._config.unsettled_interval.total_seconds()
        settled_after_s = SETTLED_AFTER_CYCLES * unsettled_s
        self._membership = see_members(
            self._membership, members, now_s, settled_after_s=settled_after_s
        )
        return self._membership.is_settling(
            now_s, settled_after_s=settled_after_s, most_s=SETTLING_CYCLES_MAX * unsettled_s
        )

    async def _carry_out(self, moves: Moves, view: View, running: Collection[str]) -> Round:
        """Claim and steal, and note what came of it; who leaves takes nothing any more."""
        acquisitions = [*moves.claims, *([moves.steal] if moves.steal else [])]
        if self._is_leaving:
            acquisitions = []
        results = await self._leases.claim(acquisitions) if acquisitions else []
        won = {r.claim.partition_id for r in results if r.outcome is WriteOutcome.WON}
        await self._give_untouched(moves.hand_overs, view, running)
        self._report(results)
        return Round(
            moves=moves,
            claimed=tuple(c.partition_id for c in moves.claims if c.partition_id in won),
            stolen=tuple(
                c.partition_id for c in [moves.steal] if c is not None and c.partition_id in won
            ),
            conflict_count=sum(r.outcome is WriteOutcome.LOST for r in results),
        )

    async def _give_untouched(
        self, targets: Mapping[str, str | None], view: View, running: Collection[str]
    ) -> None:
        """Give on what is recorded as ours but is not taken up: there is nothing to drain."""
        at_work = view.held.union(running)
        untouched = [
            OwnershipClaim(
                partition_id=p,
                owner_id=target,
                expected_etag=view.ownership_by_partition[p].etag,
            )
            for p, target in targets.items()
            if p not in at_work and p in view.ownership_by_partition
        ]
        if untouched:
            await self._store.claim_ownership(self._group, untouched)

    def _report(self, results: Collection[ClaimResult]) -> None:
        unknown = [r.claim.partition_id for r in results if r.outcome is WriteOutcome.UNKNOWN]
        if unknown and not self._is_unclear:
            self._log.warning("claim_outcome_unknown", partition_ids=unknown)
        elif results and not unknown and self._is_unclear:
            self._log.info("claim_outcome_known_again")
        if results:
            self._is_unclear = bool(unknown)
