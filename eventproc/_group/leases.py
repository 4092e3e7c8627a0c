"""The leases that this processor holds: claim, renew, verify, hand over, lose.

Rule 1: a lease begins when its write was sent, and only if the store confirmed the write.
Rule 2: after a write of unknown outcome, read again before relying on the lease.
Rule 3: a listing that contradicts a lease is a hint; the proof is a conditional write.
All of this runs on the store's loop, so that handlers cannot delay it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Final

from eventproc._base.logs import ConditionLogger, Logger
from eventproc._base.tasks import together
from eventproc._core.ownership.lease import Lease, check_pause_s, due_leases, trusted_until_s
from eventproc._group.answers import Answers
from eventproc._group.membership import Membership
from eventproc.errors import StoreError
from eventproc.models import (
    ClaimResult,
    ConsumerGroup,
    OwnershipClaim,
    OwnershipSnapshot,
    PartitionOwnership,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore

REWRITTEN_REMEDY: Final = (
    "another program wrote this record in the owner's own name, as `eventproc checkpoints` does "
    "when it moves a checkpoint: the partition begins again at the stored checkpoint"
)


class Leases:
    """The leases of one processor, by partition."""

    def __init__(
        self,
        store: CheckpointStore,
        group: ConsumerGroup,
        membership: Membership,
        *,
        answers: Answers,
        expiration: timedelta,
        clock: Callable[[], float],
        on_lost: Callable[[str], None],
        log: Logger,
    ) -> None:
        """Begin with no lease.

        Args:
            store: Where the records are.
            group: The consumer group of the records.
            membership: Has the owner id to write, and knows whether another processor has it, too.
            answers: Notes whether the store answers writes.
            expiration: How long after its last write a record has a live owner.
            clock: This processor's monotonic clock, in seconds.
            on_lost: Called with the id of each partition whose lease is lost.
            log: Gets failed renewals and lost leases.
        """
        self._store = store
        self._group = group
        self._membership = membership
        self._answers = answers
        self._owner_id = membership.own.member.owner_id
        self._expiration = expiration
        self._trusted_for_s = trusted_until_s(0.0, expiration)
        self._clock = clock
        self._on_lost = on_lost
        self._log = log
        self._lease_by_partition: dict[str, Lease] = {}
        self._locks = PartitionLocks()
        self._renewal_failure = ConditionLogger(log, "renewal_failed", "renewal_recovered")
        self._loss_count = 0
        """Rises when all leases are lost: answers to earlier writes are then ignored."""

        self._unknown_claims = ConditionLogger(log, "claim_outcome_unknown", "claim_recovered")
        """Logs when outcomes of claims begin to be unknown, and when they are known again."""

        self.has_foreign = False  # Whether processors of an Azure SDK are in the group.
        self.write_count = 0
        self._error: str | None = None

    @property
    def held(self) -> frozenset[str]:
        """The partitions with a lease, trusted or not."""
        return frozenset(self._lease_by_partition)

    @property
    def by_partition(self) -> Mapping[str, Lease]:
        """A snapshot of the leases, by partition id."""
        return self._lease_by_partition.copy()

    @property
    def error(self) -> str | None:
        """Why the newest renewals failed; ``None`` if they did not, or if there is no lease."""
        return self._error if self._lease_by_partition else None

    @property
    def is_any_trusted(self) -> bool:
        """Whether at least one lease may be trusted now."""
        return any(self.remaining_s(p) > 0 for p in self._lease_by_partition)

    def remaining_s(self, partition_id: str, *, epoch: int | None = None) -> float:
        """For how many seconds the lease of the partition may be trusted; zero or less: not.

        With an *epoch*, only the lease with that epoch counts, not a later one. Called in the
        handlers' thread, too.
        """
        lease = self._lease_by_partition.get(partition_id)
        if lease is None or (epoch is not None and epoch != lease.epoch):
            return float("-inf")
        return lease.sent_at_s + self._trusted_for_s - self._clock()

    @property
    def margin_s(self) -> float | None:
        """Seconds until the first lease is not trusted any more; ``None`` without a lease."""
        left_s = [s for s in map(self.remaining_s, self.held) if s > float("-inf")]
        return max(0.0, min(left_s)) if left_s else None

    async def claim(self, claims: Sequence[OwnershipClaim]) -> Sequence[ClaimResult]:
        """Write claims for this processor, and keep a lease for each one won."""
        if not claims:
            return []
        async with self._locks.hold([claim.partition_id for claim in claims]):
            sent_at_s, loss_count = self._clock(), self._loss_count
            results = await self.write(claims)
            if loss_count == self._loss_count:
                self._begin_or_extend(results, sent_at_s)
        unknown = [result for result in results if result.outcome is WriteOutcome.UNKNOWN]
        if unknown:
            error = unknown[0].error
            self._unknown_claims.note(
                partition_ids=[result.claim.partition_id for result in unknown],
                error=None if error is None else str(error),
            )
        else:
            self._unknown_claims.end()
        return results

    async def transfer(self, partition_id: str, owner_id: str | None) -> WriteOutcome:
        """End a lease and write another owner into its record; with ``None``, release it.

        After an unknown outcome the record is read. If it still names this processor, and no other
        one has its owner id, the write is repeated once. If that outcome is unknown, too, a later
        cycle finds the partition recorded as this processor's, and claims it or hands it over.
        """
        async with self._locks.hold([partition_id]):
            lease = self._lease_by_partition.pop(partition_id, None)
            if lease is None:
                return WriteOutcome.LOST
            claim = OwnershipClaim(
                partition_id=partition_id,
                owner_id=owner_id,
                expected_etag=lease.etag,
                epoch=lease.epoch,
            )
            (result,) = await self.write([claim])
            is_unclear = result.outcome is WriteOutcome.LOST and lease.is_doubtful
            if is_unclear or result.outcome is WriteOutcome.UNKNOWN:
                current = await self._read_own(partition_id)
                if current is not None:
                    (result,) = await self.write([replace(claim, expected_etag=current.etag)])
            return result.outcome

    async def write(self, claims: Sequence[OwnershipClaim]) -> Sequence[ClaimResult]:
        """Write ownership records; no lease is changed."""
        self._answers.note_sent()
        results = await self._store.claim_ownership(self._group, claims)
        self._answers.note_outcomes(result.outcome for result in results)
        self.write_count += len(results)
        return results

    async def verify(self, partition_id: str) -> bool:
        """Renew the lease; return whether the partition is still ours.

        Raises:
            StoreError: the outcome of the renewal is unknown.
        """
        lease = self._lease_by_partition.get(partition_id)
        if lease is None:
            return False
        await self._renew([lease])
        lease = self._lease_by_partition.get(partition_id)
        if lease is not None and lease.is_doubtful:
            raise StoreError(f"ownership of partition {partition_id!r} could not be verified")
        return lease is not None

    async def compare(
        self, contradicted: Sequence[Lease], snapshot: OwnershipSnapshot, asked_at_s: float
    ) -> None:
        """Renew each lease that a listing contradicts: the conditional write shows who is right.

        A listing may show a renewal whose answer has not come yet. So this waits for writes under
        way, and renews only leases that are still contradicted.
        """
        stored = snapshot.by_partition
        names = [lease.partition_id for lease in contradicted]
        async with self._locks.hold(names):
            leases = [self._lease_by_partition[p] for p in names if p in self._lease_by_partition]
        doubted = [
            lease
            for lease in leases
            if lease.is_contradicted(self._owner_id, stored.get(lease.partition_id), asked_at_s)
        ]
        if doubted:
            await self._renew(doubted, stored)

    async def keep(self) -> None:
        """Until cancelled, renew each lease when it is due, and retry renewals that failed.

        Those that failed have a loop of their own: a record that hangs again and again delays the
        others once.
        """
        await together(
            self._keep(is_doubtful=False), self._keep(is_doubtful=True), self._keep_asking()
        )

    async def _keep(self, *, is_doubtful: bool) -> None:
        pause_s = check_pause_s(self._expiration)
        while True:
            await self.renew_due(is_doubtful=is_doubtful)
            await asyncio.sleep(pause_s)

    async def _keep_asking(self) -> None:
        """Write other records if a write has had no answer: it may be for that one record alone.

        Without this, an owner of such a record would believe that nobody can write.
        """
        pause_s = check_pause_s(self._expiration)
        while True:
            since_s = self._answers.unanswered_since_s
            if since_s is not None and self._clock() - since_s > pause_s:
                sure = [each for each in self._lease_by_partition.values() if not each.is_doubtful]
                await together(self._membership.renew(), self._renew(sure[:1]))
            await asyncio.sleep(pause_s)

    def lose_all(self) -> None:
        """Drop all leases, because another processor has this one's owner id.

        Writes under way give no lease, either: the partitions are the other one's.
        """
        self._loss_count += 1
        for partition_id in list(self._lease_by_partition):
            del self._lease_by_partition[partition_id]
            self._on_lost(partition_id)

    async def renew_all(self) -> None:
        """Renew every lease now."""
        await self._renew(list(self._lease_by_partition.values()))

    async def renew_due(self, *, is_doubtful: bool | None = None) -> None:
        """Renew the leases that are due, at once: all, the doubtful ones, or the others."""
        due = due_leases(
            self._lease_by_partition.values(),
            self._expiration,
            self._clock(),
            has_foreign=self.has_foreign,
        )
        await self._renew([each for each in due if is_doubtful in {None, each.is_doubtful}])

    async def is_any_recorded(self) -> bool:
        """Whether a stored record names this processor as the owner, with or without a lease.

        Raises:
            StoreError: the records could not be read.
        """
        stored = (await self._store.list_ownership(self._group)).ownerships
        return any(ownership.owner_id == self._owner_id for ownership in stored)

    async def _renew(
        self, leases: Sequence[Lease], stored: Mapping[str, PartitionOwnership] | None = None
    ) -> None:
        """Write the records of these leases again, and drop each lease whose record has changed.

        The log names the new owners from *stored*, or reads them.
        """
        gone: list[str] = []
        if not leases:
            return
        async with self._locks.hold([lease.partition_id for lease in leases]):
            current = [
                self._lease_by_partition[lease.partition_id]
                for lease in leases
                if lease.partition_id in self._lease_by_partition
            ]
            results = await self._renew_once(current)
            doubtful = {lease.partition_id for lease in current if lease.is_doubtful}
            lost = [r.claim.partition_id for r in results if r.outcome is WriteOutcome.LOST]
            still_ours = await self._resolve_doubtful([p for p in lost if p in doubtful])
            for partition_id in lost:
                if partition_id in still_ours:
                    continue
                if self._lease_by_partition.pop(partition_id, None) is not None:
                    self._on_lost(partition_id)
                    gone.append(partition_id)
        if gone:
            self._log_losses(gone, await self._stored() if stored is None else stored)

    def _log_losses(self, gone: Iterable[str], stored: Mapping[str, PartitionOwnership]) -> None:
        """Log which owner each record has now: a refused write does not say who changed it."""
        for partition_id in gone:
            ownership = stored.get(partition_id)
            owner_id = ownership.owner_id if ownership is not None else None
            log = self._log.bind(partition_id=partition_id)
            if owner_id == self._owner_id:
                log.warning("ownership_rewritten", remedy=REWRITTEN_REMEDY)
            else:
                log.warning("ownership_lost", to_owner_id=owner_id)

    async def _renew_once(self, leases: Iterable[Lease]) -> Sequence[ClaimResult]:
        """Write each record again; extend the leases that are confirmed, doubt the unknown ones."""
        claims = [
            OwnershipClaim(
                partition_id=lease.partition_id,
                owner_id=self._owner_id,
                expected_etag=lease.etag,
                epoch=lease.epoch,
            )
            for lease in leases
        ]
        if not claims:
            return []
        sent_at_s, loss_count = self._clock(), self._loss_count
        results = await self.write(claims)
        if loss_count != self._loss_count:
            return []
        self._begin_or_extend(results, sent_at_s)
        for result in results:
            if result.outcome is WriteOutcome.UNKNOWN:
                partition_id = result.claim.partition_id
                lease = self._lease_by_partition[partition_id]
                self._lease_by_partition[partition_id] = replace(lease, is_doubtful=True)
        unknown = [r for r in results if r.outcome is WriteOutcome.UNKNOWN]
        held = self._lease_by_partition
        if unknown:
            self._error = str(unknown[0].error or "no answer")
            self._renewal_failure.note(held_count=len(held), error=self._error)
        elif not any(lease.is_doubtful for lease in held.values()):
            self._error = None
            self._renewal_failure.end(held_count=len(held))
        return results

    async def _resolve_doubtful(self, partition_ids: Collection[str]) -> set[str]:
        """Return the partitions that are still ours although a write with an old ETag was refused.

        Then an earlier write of unknown outcome has taken effect, and the record is renewed with
        its current ETag before the lease is trusted. But if another processor uses this owner id,
        that write may have been the other's: the lease is lost, and a cycle claims again.
        """
        if not partition_ids:
            return set()
        try:
            snapshot = await self._store.list_ownership(self._group)
            # Checked after reading: a processor writes its member record before any other.
            if not await self._membership.is_sole_holder():
                return set()
        except StoreError:
            return set(partition_ids)
        renewed = []
        for partition_id, ownership in snapshot.by_partition.items():
            lease = self._lease_by_partition.get(partition_id)
            is_ours = partition_id in partition_ids and ownership.owner_id == self._owner_id
            if lease is not None and is_ours and ownership.epoch == lease.epoch:
                lease = self._lease_by_partition[partition_id] = replace(lease, etag=ownership.etag)
                renewed.append(lease)
        results = await self._renew_once(renewed)
        return {r.claim.partition_id for r in results if r.outcome is not WriteOutcome.LOST}

    async def _read_own(self, partition_id: str) -> PartitionOwnership | None:
        """Read the record, if it is this processor's; ``None`` if that cannot be known."""
        ownership = (await self._stored()).get(partition_id)
        if ownership is None or ownership.owner_id != self._owner_id:
            return None
        try:
            # Checked after reading: a processor writes its member record before any other.
            return ownership if await self._membership.is_sole_holder() else None
        except StoreError:
            return None

    async def _stored(self) -> Mapping[str, PartitionOwnership]:
        """The current records; none if the store does not answer."""
        try:
            return (await self._store.list_ownership(self._group)).by_partition
        except StoreError:
            return {}

    def _begin_or_extend(self, results: Iterable[ClaimResult], sent_at_s: float) -> None:
        """Begin or extend the lease of each record that was written."""
        for result in results:
            if result.outcome is WriteOutcome.WON and result.ownership is not None:
                partition_id = result.claim.partition_id
                self._lease_by_partition[partition_id] = Lease(
                    partition_id=partition_id,
                    etag=result.ownership.etag,
                    epoch=result.ownership.epoch,
                    sent_at_s=sent_at_s,
                    answered_at_s=self._clock(),
                )


class PartitionLocks:
    """A lock for each partition, for use on one event loop.

    Two concurrent conditional writes of one partition would conflict: the first one replaces the
    ETag that the second one expects.
    """

    def __init__(self) -> None:
        self._writing: set[str] = set()
        self._written = asyncio.Condition()

    @asynccontextmanager
    async def hold(self, partition_ids: Collection[str]) -> AsyncIterator[None]:
        """Hold the locks of all these partitions for the length of an ``async with`` block."""
        wanted = frozenset(partition_ids)
        async with self._written:
            await self._written.wait_for(lambda: not wanted & self._writing)
            self._writing |= wanted
        try:
            yield
        finally:
            async with self._written:
                self._writing -= wanted
                self._written.notify_all()
