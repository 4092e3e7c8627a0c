"""Votes on the number of processes: reads what a vote needs, and wakes who waits for another one.

It only reads the records of the store and the ends of the hub's partitions, so it has no effect on
the group, whichever SDK its processors use.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from eventproc._base.tasks import cancellation_kept, together
from eventproc._core.delivery.checkpoints import handled_in_hub
from eventproc._core.ownership.liveness import fresh_owners, live_members
from eventproc._core.scaling.decision import Decision, Reason, ScalingMemory, ScalingRules, decide
from eventproc._core.scaling.readings import PartitionReading, Reading
from eventproc._group.records import pauses_in_force
from eventproc.errors import SourceError, StoreError
from eventproc.models import ConsumerGroup, MembershipSnapshot, MemberStatus, PartitionProperties
from eventproc.ports import CheckpointStore, EventSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A decision, and the error if store or hub did not answer."""

    decision: Decision
    error: str | None = None

    def as_json(self) -> dict[str, object]:
        """The vote as JSON: rates in events per second, ``None`` for what is not known."""
        decision = self.decision
        return {
            "replicas": decision.replicas,
            "reason": decision.reason.value,
            "backlog": decision.backlog,
            "arrival_per_s": _rounded(decision.arrival_per_s),
            "drain_per_s": _rounded(decision.drain_per_s),
            "rate_of_one": _rounded(decision.rate_of_one),
            **({} if self.error is None else {"error": self.error}),
        }


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 3)


class Autoscaler:
    """The votes on one group."""

    def __init__(self, read: Callable[[], Awaitable[Reading]], rules: ScalingRules) -> None:
        """*read* reads the group; it may raise a ``StoreError`` or a ``SourceError``."""
        self._read = read
        self._rules = rules
        self._memory = ScalingMemory()
        self._changed = asyncio.Condition()
        self.vote = Vote(decision=Decision(replicas=None, reason=Reason.NOT_READ))
        """The newest vote."""

    async def decide(self) -> Vote:
        """Read the group, and vote.

        Raises:
            StoreError: The store did not answer, or refuses.
            SourceError: The hub did not answer, or refuses.
        """
        await self._decide_on(await self._read(), None)
        return self.vote

    async def run(self, every: timedelta) -> None:
        """Vote periodically, until cancelled. Without an answer the vote keeps its number."""
        while True:
            try:
                with cancellation_kept():
                    reading = await self._read()
            except (StoreError, SourceError) as error:
                await self._decide_on(None, " ".join(str(error).split()))
            else:
                await self._decide_on(reading, None)
            await asyncio.sleep(every.total_seconds())

    async def changes(self) -> AsyncIterator[Vote]:
        """Yield the newest vote, then each with another number, or at begin or end of an outage."""
        shown: Vote | None = None
        while True:
            async with self._changed:
                while not _differs(self.vote, shown):
                    await self._changed.wait()
                shown = self.vote
            yield shown

    async def activity(self) -> AsyncIterator[bool]:
        """Yield whether the group needs any process, then each change of that."""
        former: bool | None = None
        async for vote in self.changes():
            replicas = vote.decision.replicas
            if replicas is not None and (replicas > 0) is not former:
                former = replicas > 0
                yield former

    async def _decide_on(self, reading: Reading | None, error: str | None) -> None:
        self._memory, decision = decide(self._memory, reading, self._rules)
        async with self._changed:
            self.vote = Vote(decision=decision, error=error)
            self._changed.notify_all()


def _differs(vote: Vote, shown: Vote | None) -> bool:
    if vote.decision.reason is Reason.NOT_READ:
        return False
    return (
        shown is None
        or vote.decision.replicas != shown.decision.replicas
        or (vote.error is None) is not (shown.error is None)
    )


async def read_group(
    store: CheckpointStore,
    group: ConsumerGroup,
    source: EventSource,
    *,
    expiration: timedelta,
    clock: Callable[[], float],
) -> Reading:
    """Read a group once.

    Args:
        store: An open store.
        group: The group.
        source: An open source.
        expiration: The group's ``ownership_expiration``.
        clock: Returns monotonic seconds.

    Raises:
        StoreError: The store did not answer, or refuses.
        SourceError: The hub did not answer, or refuses.
    """
    present = await store.list_members(group)
    owned = await store.list_ownership(group)
    checkpoints = await store.list_checkpoints(group)
    # Read after the checkpoints, so that no backlog is negative.
    ids = await source.partition_ids()
    at_s = clock()
    ends = await together(*(source.partition_properties(p) for p in ids))
    owners = fresh_owners(owned, expiration)
    found = {c.partition_id: c for c in checkpoints}
    pauses = await pauses_in_force(store, group, present)
    return Reading(
        at_s=at_s,
        partitions={
            end.partition_id: _partition(
                end,
                handled_in_hub(found.get(end.partition_id), end, source.created_at),
                owners.get(end.partition_id),
                is_paused=pauses.of(end.partition_id) is not None,
            )
            for end in ends
        },
        member_ids=_sharing_members(present, {o for o in owners.values() if o}, expiration),
    )


def _partition(
    end: PartitionProperties, handled: int | None, owner_id: str | None, *, is_paused: bool
) -> PartitionReading:
    last = end.last_enqueued_sequence_number
    # Of an empty partition the hub reports the newest event that it ever had.
    first = last + 1 if end.is_empty else end.beginning_sequence_number
    return PartitionReading(
        first=first, last=last, handled=handled, owner_id=owner_id, is_paused=is_paused
    )


def _sharing_members(
    present: MembershipSnapshot, owners: set[str], expiration: timedelta
) -> frozenset[str]:
    """Return the owners, and the members that may get a partition.

    A member on standby has no share until it replaces another one; a leaving one gives up its own.
    """
    status_by_id = {m.owner_id: m.status for m in live_members(present, owners, expiration)}
    leaving = {o for o, status in status_by_id.items() if status is MemberStatus.LEAVING}
    active = {o for o, status in status_by_id.items() if status is MemberStatus.ACTIVE}
    return frozenset((owners | active) - leaving)
