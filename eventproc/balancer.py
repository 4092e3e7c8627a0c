"""One look at the group: read, decide, write.

Everything that a processor does about ownership in one cycle, on the control side. What to do
about it with pumps is the processor's business.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from eventproc.config import EventProcessorConfig
from eventproc.core.balance import Moves, View, decide, due_since_s
from eventproc.core.lease import Sighting, live_owners, present_members, sight
from eventproc.leases import Leases
from eventproc.logs import Logger
from eventproc.membership import MembershipSnapshot
from eventproc.models import (
    ClaimResult,
    ConsumerGroup,
    LoadBalancingStrategy,
    OwnershipClaim,
    OwnershipSnapshot,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore
from eventproc.presence import Presence

OUTAGE_EXPIRATION_FRACTION = 0.5
"""Without an answer for this part of the expiration, there was an outage."""

GRACE_INTERVALS = 2
"""After an outage, how many intervals everybody has to renew before anybody is called dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one cycle found and did."""

    moves: Moves
    claimed: tuple[str, ...]
    stolen: tuple[str, ...]
    conflict_count: int
    """Claims that somebody else won."""


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
        self._due_since_s: dict[str, float] = {}
        self._read_at_s: float | None = None
        self._grace_until_s = float("-inf")
        self._looking = asyncio.Lock()
        self._is_leaving = False

    async def cycle(self, partition_ids: Collection[str], busy: Collection[str]) -> Round:
        """Do one cycle.

        Args:
            partition_ids: All partitions of the hub, as last read.
            busy: Partitions that are being handed over; they count as held until that is done.

        Raises:
            StoreUnavailableError: the group could not be read; nothing was written.
            DuplicateOwnerError: this processor's id was taken while it was away.
        """
        async with self._looking:
            present, owned = await self._read()
            view = self._view(partition_ids, busy, present, owned, is_leaving=False)
            await self._presence.refresh(
                present,
                owns_something=self._owner_id in view.live_owner_by_partition.values(),
                is_trusted=self._leases.is_any_trusted,
            )
            moves = decide(view, self._config.load_balancing_strategy)
            self._due_since_s = due_since_s(
                self._due_since_s, moves.owner_by_partition, view, self._clock()
            )
            await self._presence.forget(present, view.live_owner_by_partition.values())
            return await self._carry_out(moves, view)

    async def farewell(self, partition_ids: Collection[str]) -> dict[str, str | None]:
        """Tell everybody that this processor leaves; return who shall have what it holds.

        ``None`` where nobody can be handed a partition: it is to be released.
        """
        self._is_leaving = True
        async with self._looking:  # A look under way goes on, and may still win a claim.
            await self._presence.leave()
            present, owned = await self._read()
            view = self._view(partition_ids, (), present, owned, is_leaving=True)
            moves = decide(view, self._config.load_balancing_strategy)
            mine = [
                p for p, owner in view.live_owner_by_partition.items() if owner == self._owner_id
            ]
            targets = {p: moves.hand_overs.get(p) for p in mine}
            await self._give_untouched(targets, view)
            return {p: targets[p] for p in view.held}

    async def _read(self) -> tuple[MembershipSnapshot, OwnershipSnapshot]:
        """Read presence, then ownership: a newcomer is seen in one of them at least."""
        present = await self._store.list_members(self._group)
        asked_at_s = self._clock()
        owned = await self._store.list_ownership(self._group)
        now_s = self._clock()
        if self._read_at_s is not None:
            outage_s = OUTAGE_EXPIRATION_FRACTION * self._config.ownership_expiration
            if now_s - self._read_at_s > outage_s.total_seconds():
                grace = GRACE_INTERVALS * self._config.load_balancing_interval
                self._grace_until_s = now_s + grace.total_seconds()
                self._log.warning("outage_ended", silent_s=round(now_s - self._read_at_s, 3))
        self._read_at_s = now_s
        await self._leases.compare(owned, asked_at_s)
        return present, owned

    def _view(
        self,
        partition_ids: Collection[str],
        busy: Collection[str],
        present: MembershipSnapshot,
        owned: OwnershipSnapshot,
        *,
        is_leaving: bool,
    ) -> View:
        now_s = self._clock()
        self._sightings = sight(self._sightings, owned.ownerships, now_s)
        live = live_owners(
            owned,
            self._sightings,
            expiration=self._config.ownership_expiration,
            now_s=now_s,
            is_after_outage=now_s < self._grace_until_s,
        )
        held = self._leases.held | frozenset(busy)
        live.update(dict.fromkeys(held, self._owner_id))
        members = present_members(
            present.members,
            as_of=present.as_of,
            resolution=present.resolution,
            expiration=self._config.ownership_expiration,
            owners=live.values(),
        )
        everybody = {self._owner_id, *live.values(), *(member.owner_id for member in members)}
        leaving = {member.owner_id for member in members if member.is_leaving}
        leaving = leaving | {self._owner_id} if is_leaving else leaving - {self._owner_id}
        cooperative = {member.owner_id for member in members if member.hands_over}
        if self._config.load_balancing_strategy is LoadBalancingStrategy.COOPERATIVE:
            cooperative.add(self._owner_id)
        patience_s = self._config.handoff_timeout.total_seconds()
        return View(
            owner_id=self._owner_id,
            partition_ids=tuple(partition_ids),
            ownership_by_partition={o.partition_id: o for o in owned.ownerships},
            live_owner_by_partition=live,
            members=frozenset(everybody - leaving),
            cooperative=frozenset(cooperative),
            held=held,
            overdue=frozenset(
                p for p, since_s in self._due_since_s.items() if now_s - since_s > patience_s
            ),
        )

    async def _carry_out(self, moves: Moves, view: View) -> Round:
        """Claim and steal, and note what came of it; who leaves takes nothing any more."""
        acquisitions = [*moves.claims, *([moves.steal] if moves.steal else [])]
        if self._is_leaving:
            acquisitions = []
        results = await self._leases.claim(acquisitions) if acquisitions else []
        won = {r.claim.partition_id for r in results if r.outcome is WriteOutcome.WON}
        await self._give_untouched(moves.hand_overs, view)
        self._report(results)
        return Round(
            moves=moves,
            claimed=tuple(c.partition_id for c in moves.claims if c.partition_id in won),
            stolen=tuple(
                c.partition_id for c in [moves.steal] if c is not None and c.partition_id in won
            ),
            conflict_count=sum(r.outcome is WriteOutcome.LOST for r in results),
        )

    async def _give_untouched(self, targets: Mapping[str, str | None], view: View) -> None:
        """Give on what is recorded as ours but was never taken up: there is nothing to drain."""
        untouched = [
            OwnershipClaim(
                partition_id=p,
                owner_id=target,
                expected_etag=view.ownership_by_partition[p].etag,
            )
            for p, target in targets.items()
            if p not in view.held and p in view.ownership_by_partition
        ]
        if untouched:
            await self._store.claim_ownership(self._group, untouched)

    def _report(self, results: Collection[ClaimResult]) -> None:
        unknown = [r.claim.partition_id for r in results if r.outcome is WriteOutcome.UNKNOWN]
        if unknown:
            self._log.warning("claim_outcome_unknown", partition_ids=unknown)
