"""One cycle of the ownership half: read the group's records, decide, write.

``_core/ownership/cycle.py`` decides what to write; this module reads the records before that, and
writes after it, on the store's loop. ``_runtime/run.py`` passes the result to the pumps.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from eventproc._base.logs import Logger
from eventproc._core.ownership.cycle import Actions, decide
from eventproc._core.ownership.living import Listing
from eventproc._core.ownership.memory import before_polls, observe
from eventproc._core.ownership.pauses import PAUSES_RECORD, Pauses
from eventproc._core.ownership.rules import Rules
from eventproc._core.placement.loads import WorkDone
from eventproc._core.placement.placement import MemberFacts
from eventproc._core.placement.published import Published, measured_by
from eventproc._core.placement.published_plan import PLAN_RECORD
from eventproc._group.answers import Answers
from eventproc._group.config import GroupConfig
from eventproc._group.group_log import GroupLog
from eventproc._group.leases import Leases
from eventproc._group.load_meter import LoadMeter
from eventproc._group.membership import Membership
from eventproc._group.records import PausesReader, PlanStore
from eventproc.models import ClaimResult, ConsumerGroup, Member, OwnershipClaim, WriteOutcome
from eventproc.ports import CheckpointStore

_NO_WORK: Final[Mapping[str, WorkDone]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleResult:
    """What one cycle decided and did."""

    actions: Actions
    claims: tuple[ClaimResult, ...]
    """The outcomes of the claims, and of the steal."""

    @property
    def claimed(self) -> tuple[str, ...]:
        """The partitions that were claimed."""
        return self._won(self.actions.moves.claims)

    @property
    def stolen(self) -> tuple[str, ...]:
        """The partition that was stolen, if one was."""
        steal = self.actions.moves.steal
        return self._won((steal,) if steal else ())

    @property
    def conflict_count(self) -> int:
        """How many claims failed because another processor wrote first."""
        return sum(result.outcome is WriteOutcome.LOST for result in self.claims)

    def _won(self, asked: Sequence[OwnershipClaim]) -> tuple[str, ...]:
        won = {r.claim.partition_id for r in self.claims if r.outcome is WriteOutcome.WON}
        return tuple(claim.partition_id for claim in asked if claim.partition_id in won)


class Balancer:
    """Reads the group, and writes what this processor decides."""

    def __init__(
        self,
        store: CheckpointStore,
        group: ConsumerGroup,
        member: Member,
        *,
        config: GroupConfig,
        clock: Callable[[], float],
        on_lost: Callable[[str], None],
        log: Logger,
        patience: timedelta | None = None,
    ) -> None:
        """Create the parts. The caller awaits ``membership.enter`` before the first cycle.

        *on_lost* gets the id of each partition whose lease is lost.
        """
        self._store = store
        self._group = group
        expiration = config.ownership_expiration
        self._answers = Answers(clock)
        self.membership = Membership(
            store,
            group,
            member,
            answers=self._answers,
            expiration=expiration,
            clock=clock,
            log=log,
        )
        self.leases = Leases(
            store,
            group,
            self.membership,
            answers=self._answers,
            expiration=expiration,
            clock=clock,
            on_lost=on_lost,
            log=log,
        )
        self._plan_store = PlanStore(store, group, log)
        self._pauses = PausesReader(store, group, log)
        self._loads = LoadMeter(clock)
        self._rules = Rules(
            owner_id=member.owner_id,
            strategy=config.load_balancing_strategy,
            placement=config.placement,
            facts=MemberFacts.of(member),
            expiration=expiration,
            handoff_timeout=config.handoff_timeout,
            standby_timeout=config.standby_timeout,
            load_balancing_interval=config.load_balancing_interval,
            rebalance_interval=config.rebalance_interval,
            patience=patience,
        )
        self._clock = clock
        self._memory = before_polls(self._rules, self.membership.own)
        self._cycle_lock = asyncio.Lock()
        self._changes = GroupLog(self._rules, log)

    @property
    def pauses(self) -> Pauses:
        """What an operator paused, as last read; may be read from another thread."""
        return self._pauses.known

    async def cycle(
        self,
        partition_ids: Collection[str],
        handing_over: Collection[str],
        running: Collection[str],
        work: Mapping[str, WorkDone] = _NO_WORK,
        expected: frozenset[str] | None = None,
    ) -> CycleResult:
        """Run one cycle.

        Args:
            partition_ids: All partitions of the hub, as last read.
            handing_over: Partitions that are being handed over; they count as held until then.
            running: Partitions whose handler may still run, even if the lease is lost.
            work: The work done so far for each partition that this processor serves.
            expected: The members that the roster names, if this processor has read it.

        Raises:
            StoreUnavailableError: the group could not be read; nothing was written.
            DuplicateOwnerError: another processor has taken this one's owner id.
        """
        async with self._cycle_lock:
            self._note_load(work)
            listing = await self._read(
                tuple(partition_ids), frozenset(handing_over), frozenset(running), expected
            )
            actions = self._decide(listing)
            # In the order of the fields of ``Actions``.
            await self.leases.compare(actions.renewals, listing.owned, listing.asked_at_s)
            may_claim = await self.membership.carry_out(actions.member, listing.asked_at_s)
            # An ownership record that names this owner id, without a lease here, may have been
            # written by a newer process with the same id. That one wrote its member record before,
            # so a member record that is read now shows it.
            if may_claim and actions.is_resuming:
                may_claim = await self.membership.is_recorded()
            results = await self.leases.claim(actions.moves.taken) if may_claim else ()
            if actions.transfers and await self.membership.is_sole_holder():
                await self.leases.write(actions.transfers)
            if may_claim and actions.publish is not None:
                await self._plan_store.publish(actions.publish)
            for member in actions.forgotten:
                await self._store.withdraw_member(self._group, member)
        return CycleResult(actions=actions, claims=tuple(results))

    def _note_load(self, work: Mapping[str, WorkDone]) -> None:
        """Put the partitions' loads into the member record, if the group's placement uses them."""
        group, load = self._memory.group, ""
        by = measured_by(group.placement)
        if by is not None and by == measured_by(self._rules.placement):
            known = {} if group.published is None else group.published.loads
            load = self._loads.report(by, work, known)
        if load != self.membership.own.member.load:
            self.membership.note_load(load)

    async def _read(
        self,
        partition_ids: tuple[str, ...],
        handing_over: frozenset[str],
        running: frozenset[str],
        expected: frozenset[str] | None,
    ) -> Listing:
        """Read members, then ownership: a processor that starts is seen in at least one of them."""
        asked_at_s = self._clock()
        present = await self._store.list_members(self._group)
        self._answers.note_answer()
        self.membership.note(present, asked_at_s)
        await self._pauses.read(present.record_etags.get(PAUSES_RECORD), present.as_of)
        published = None
        if isinstance(self._memory.group.placement, Published):
            published = await self._plan_store.read(present.record_etags.get(PLAN_RECORD))
        owned = await self._store.list_ownership(self._group)
        self._answers.note_answer()
        return Listing(
            partition_ids=partition_ids,
            present=present,
            owned=owned,
            published=published,
            expected=expected,
            asked_at_s=asked_at_s,
            silence_s=self._answers.take_silence_s(),
            unanswered_s=self._answers.take_unanswered_s(),
            own=self.membership.own,
            leases=self.leases.by_partition,
            is_trusted=self.leases.is_any_trusted,
            handing_over=handing_over,
            running=running,
        )

    def _decide(self, listing: Listing) -> Actions:
        """Return what this listing and the memory of earlier ones ask for; log what has changed."""
        before = self._memory
        seen = observe(before, listing, self._rules, self._clock())
        actions = decide(seen, self._rules)
        self._memory = seen.waiting_for(actions.plan.waits)
        self._changes.note(before, seen, actions)
        self.leases.has_foreign = bool(seen.foreign)
        return actions
