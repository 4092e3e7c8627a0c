"""The leases that this processor holds: claimed, renewed, given away and lost.

Rule 1: only a confirmed write counts, and it counts from before it was sent.
Rule 2: an unknown outcome is settled by reading again, never by hoping.
Rule 3: what another record says is a hint; the conditional write is the proof.
Everything here runs on the control side, apart from the handlers.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from eventproc.core.lease import renewal_due_at_s, trusted_until_s
from eventproc.errors import StoreError
from eventproc.logs import Logger
from eventproc.models import (
    ClaimResult,
    ConsumerGroup,
    OwnershipClaim,
    OwnershipSnapshot,
    PartitionOwnership,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore

CHECKS_PER_EXPIRATION = 24
"""How often in an expiration to look for leases to renew: often enough to retry a failed one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A partition that this processor owns."""

    partition_id: str
    etag: str
    sent_at_s: float
    """When the last confirmed write was sent, on this processor's own clock."""

    answered_at_s: float
    """When its answer came: a listing asked for after this must show it."""

    is_doubtful: bool = False
    """A later write has an unknown outcome, so ``etag`` may be out of date."""


class Leases:
    """Holds, renews and gives away the leases of one processor."""

    def __init__(
        self,
        store: CheckpointStore,
        group: ConsumerGroup,
        owner_id: str,
        *,
        expiration: timedelta,
        clock: Callable[[], float],
        on_lost: Callable[[str], None],
        log: Logger,
        is_sole_holder: Callable[[], Awaitable[bool]] | None = None,
        session_trusted_until_s: Callable[[], float] | None = None,
    ) -> None:
        """Begin with no lease.

        Args:
            store: Where the records are.
            group: Whose they are.
            owner_id: In whose name to claim.
            expiration: How long a record lives that is not renewed.
            clock: This processor's own, in seconds.
            on_lost: Told of each partition that somebody else took.
            log: Where transitions are told.
            is_sole_holder: Finds out whether nobody else has acted under this ``owner_id``.
            session_trusted_until_s: Given where the presence record keeps all leases alive: until
                when that may be trusted. Then no ownership record is renewed.
        """
        self._store = store
        self._group = group
        self._owner_id = owner_id
        self._expiration = expiration
        self._clock = clock
        self._on_lost = on_lost
        self._log = log
        self._lease_by_partition: dict[str, Lease] = {}
        self._writing: set[str] = set()
        """Partitions with a write in flight: a second one would meet the first one's etag."""
        self._written = asyncio.Condition()
        self._is_failing = False
        self._compared_at_s = float("-inf")
        """When the newest listing was asked for with which all leases were compared."""

        self._life = 0
        """Which of its lives a write belongs to; it has several if it is declared dead."""

        self._is_sole_holder = is_sole_holder
        self._session_trusted_until_s = session_trusted_until_s
        self.renews_records = session_trusted_until_s is None
        """Whether each ownership record is renewed; a session does it only beside strangers."""

        self.conflict_count = 0
        """Claims that somebody else won."""
        self.write_count = 0

    @property
    def held(self) -> frozenset[str]:
        """The partitions with a lease, trusted or not."""
        return frozenset(self._lease_by_partition)

    @property
    def is_any_trusted(self) -> bool:
        """Whether at least one lease may be trusted now."""
        now_s = self._clock()
        return any(self.trusted_until_s(p) > now_s for p in self._lease_by_partition)

    def trusted_until_s(self, partition_id: str) -> float:
        """Until when, on this processor's clock, the partition may be acted upon.

        Asked by the thread of the handlers, too. What makes a lease doubtful, or takes it away,
        comes before what gives new trust; so the lease is looked at last.
        """
        session, compared_at_s = self._session_trusted_until_s, self._compared_at_s
        by_session_s = float("inf") if session is None else session()
        lease = self._lease_by_partition.get(partition_id)
        if lease is None:
            return float("-inf")
        by_record_s = trusted_until_s(lease.sent_at_s, self._expiration)
        # A session says nothing of a record that may be somebody else's: that is seen by looking.
        if session is None or lease.is_doubtful:
            return min(by_record_s, by_session_s)
        seen_at_s = max(lease.sent_at_s, compared_at_s)
        return min(trusted_until_s(seen_at_s, self._expiration), by_session_s)

    @property
    def margin_s(self) -> float | None:
        """For how long the least trusted lease may still be trusted; ``None`` without a lease."""
        until_s = [u for u in map(self.trusted_until_s, self.held) if u > float("-inf")]
        return max(0.0, min(until_s) - self._clock()) if until_s else None

    async def claim(self, claims: Sequence[OwnershipClaim]) -> Sequence[ClaimResult]:
        """Write claims in this processor's name, and keep a lease for each one won."""
        async with self._exclusively([claim.partition_id for claim in claims]):
            sent_at_s, life = self._clock(), self._life
            results = await self._write(claims)
            for result in results:
                if result.outcome is WriteOutcome.WON and life == self._life:
                    self._confirm(result, sent_at_s)
            self.conflict_count += sum(r.outcome is WriteOutcome.LOST for r in results)
            return results

    async def give(self, partition_id: str, owner_id: str | None) -> WriteOutcome:
        """Write another owner, or nobody, into a record that is ours; the lease ends before.

        An unknown outcome is looked into once and, where the record still names this processor,
        the write is repeated. If that tells nothing either, the next listing shows it, and the
        partition is either taken up again or given away again.
        """
        async with self._exclusively([partition_id]):
            lease = self._lease_by_partition.pop(partition_id, None)
            if lease is None:
                return WriteOutcome.LOST
            claim = OwnershipClaim(
                partition_id=partition_id, owner_id=owner_id, expected_etag=lease.etag
            )
            (result,) = await self._write([claim])
            is_unclear = result.outcome is WriteOutcome.LOST and lease.is_doubtful
            if is_unclear or result.outcome is WriteOutcome.UNKNOWN:
                current = await self._read_own(partition_id)
                if current is not None:
                    (result,) = await self._write([replace(claim, expected_etag=current.etag)])
            return result.outcome

    async def release_rest(self, running: Collection[str]) -> bool:
        """Release what is still recorded as ours; return whether nothing of it is left.

        Somebody may have given it to a leaver. What is *running* is left as it is, and everything
        where another processor has come under this name: it may be that one's.
        """
        snapshot = await self._store.list_ownership(self._group)
        mine = [o for o in snapshot.ownerships if o.owner_id == self._owner_id]
        idle = [
            OwnershipClaim(partition_id=o.partition_id, owner_id=None, expected_etag=o.etag)
            for o in mine
            if o.partition_id not in running
        ]
        # Asked after the reading, as when a lease is settled.
        if idle and self._is_sole_holder is not None and not await self._is_sole_holder():
            return False
        results = await self._write(idle) if idle else []
        is_clear = all(result.outcome is not WriteOutcome.UNKNOWN for result in results)
        return is_clear and len(idle) == len(mine)

    async def verify(self, partition_id: str) -> bool:
        """Prove by a renewal that the partition is ours; raise ``StoreError`` if nobody knows."""
        lease = self._lease_by_partition.get(partition_id)
        if lease is None:
            return False
        await self._renew([lease])
        lease = self._lease_by_partition.get(partition_id)
        if lease is not None and lease.is_doubtful:
            raise StoreError(f"ownership of partition {partition_id!r} could not be verified")
        return lease is not None

    async def compare(self, snapshot: OwnershipSnapshot, asked_at_s: float) -> None:
        """Check leases that a listing contradicts, by a conditional write each."""
        stored = {ownership.partition_id: ownership for ownership in snapshot.ownerships}
        suspect = [
            lease
            for lease in self._lease_by_partition.values()
            if lease.answered_at_s <= asked_at_s and not self._agrees(lease, stored)
        ]
        if suspect:
            await self._renew(suspect)
        self._compared_at_s = asked_at_s

    def _agrees(self, lease: Lease, stored: Mapping[str, PartitionOwnership]) -> bool:
        """Whether the record is as this processor wrote it, and not touched since.

        A record in our name with another etag was touched by an operator, who wants the partition
        to be begun anew; unless a write of our own with an unknown outcome is behind it.
        """
        ownership = stored.get(lease.partition_id)
        if ownership is None or ownership.owner_id != self._owner_id:
            return False
        return lease.is_doubtful or ownership.etag == lease.etag

    async def keep(self) -> None:
        """Renew for ever: each lease at a third of its life, and sooner again after a failure."""
        pause_s = self._expiration.total_seconds() / CHECKS_PER_EXPIRATION
        while True:
            await self.renew_due()
            await asyncio.sleep(pause_s)

    def lose_all(self) -> None:
        """Nothing is owned any more: this processor was declared dead.

        What is being written meanwhile counts as little: somebody may have taken it over since.
        """
        self._life += 1
        for partition_id in list(self._lease_by_partition):
            del self._lease_by_partition[partition_id]
            self._on_lost(partition_id)

    def doubt_all(self) -> None:
        """Trust no lease before its record was looked at.

        The session was silent for so long that somebody may have acted on what it kept alive: on
        a record that was deleted by hand nobody would have declared it dead.
        """
        for partition_id, lease in self._lease_by_partition.items():
            self._lease_by_partition[partition_id] = replace(lease, is_doubtful=True)

    async def renew_all(self) -> None:
        """Renew every lease now."""
        await self._renew(list(self._lease_by_partition.values()))

    async def renew_due(self) -> None:
        """Renew every lease that is due or in doubt, all at once."""
        now_s = self._clock()
        due = [
            lease
            for lease in self._lease_by_partition.values()
            if (
                self.renews_records and renewal_due_at_s(lease.sent_at_s, self._expiration) <= now_s
            )
            or (lease.is_doubtful and not self.renews_records)
        ]
        if due:
            await self._renew(due)

    async def _renew(self, leases: Sequence[Lease]) -> None:
        async with self._exclusively([lease.partition_id for lease in leases]):
            current = [
                self._lease_by_partition[lease.partition_id]
                for lease in leases
                if lease.partition_id in self._lease_by_partition
            ]
            results = await self._renew_once(current)
            doubtful = {lease.partition_id for lease in current if lease.is_doubtful}
            lost = [r.claim.partition_id for r in results if r.outcome is WriteOutcome.LOST]
            settled = await self._settle([p for p in lost if p in doubtful])
            for partition_id in lost:
                if partition_id in settled:
                    continue
                if self._lease_by_partition.pop(partition_id, None) is not None:
                    self._on_lost(partition_id)

    async def _renew_once(self, leases: Iterable[Lease]) -> Sequence[ClaimResult]:
        """Write each lease again; note what was confirmed and what became doubtful."""
        claims = [
            OwnershipClaim(
                partition_id=lease.partition_id, owner_id=self._owner_id, expected_etag=lease.etag
            )
            for lease in leases
        ]
        if not claims:
            return []
        sent_at_s, life = self._clock(), self._life
        results = await self._write(claims)
        if life != self._life:
            return []
        for result in results:
            partition_id = result.claim.partition_id
            if result.outcome is WriteOutcome.WON:
                self._confirm(result, sent_at_s)
            elif result.outcome is WriteOutcome.UNKNOWN:
                lease = self._lease_by_partition[partition_id]
                self._lease_by_partition[partition_id] = replace(lease, is_doubtful=True)
        self._note_failure(is_failing=any(r.outcome is WriteOutcome.UNKNOWN for r in results))
        return results

    async def _settle(self, partition_ids: Collection[str]) -> set[str]:
        """Return those that are still ours although a write with an old etag was refused.

        An earlier write of unknown outcome had taken effect. Each is renewed with the etag that
        it has now; only that renewal makes it trusted again. Where somebody else acts under this
        name it may as well have been his write: then it counts as lost, and is claimed anew.
        """
        if not partition_ids:
            return set()
        try:
            snapshot = await self._store.list_ownership(self._group)
            # Asked after the reading: who wrote a record had written its presence before.
            if self._is_sole_holder is not None and not await self._is_sole_holder():
                return set()
        except StoreError:
            return set(partition_ids)
        ours = {
            ownership.partition_id: ownership.etag
            for ownership in snapshot.ownerships
            if ownership.partition_id in partition_ids and ownership.owner_id == self._owner_id
        }
        renewed = []
        for partition_id, etag in ours.items():
            lease = self._lease_by_partition.get(partition_id)
            if lease is not None:
                lease = self._lease_by_partition[partition_id] = replace(lease, etag=etag)
                renewed.append(lease)
        results = await self._renew_once(renewed)
        return {r.claim.partition_id for r in results if r.outcome is not WriteOutcome.LOST}

    async def _read_own(self, partition_id: str) -> PartitionOwnership | None:
        try:
            snapshot = await self._store.list_ownership(self._group)
        except StoreError:
            return None
        for ownership in snapshot.ownerships:
            if (ownership.partition_id, ownership.owner_id) == (partition_id, self._owner_id):
                return ownership
        return None

    @asynccontextmanager
    async def _exclusively(self, partition_ids: Collection[str]) -> AsyncIterator[None]:
        """Keep two writes of one partition apart, whoever asks for them."""
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

    async def _write(self, claims: Sequence[OwnershipClaim]) -> Sequence[ClaimResult]:
        results = await self._store.claim_ownership(self._group, claims)
        self.write_count += len(results)
        return results

    def _confirm(self, result: ClaimResult, sent_at_s: float) -> None:
        ownership = result.ownership
        assert ownership is not None, "a claim that was won carries its record"
        self._lease_by_partition[ownership.partition_id] = Lease(
            partition_id=ownership.partition_id,
            etag=ownership.etag,
            sent_at_s=sent_at_s,
            answered_at_s=self._clock(),
        )

    def _note_failure(self, *, is_failing: bool) -> None:
        if is_failing and not self._is_failing:
            self._log.warning("renewal_failed", held_count=len(self._lease_by_partition))
        elif self._is_failing and not is_failing:
            self._log.info("renewal_recovered", held_count=len(self._lease_by_partition))
        self._is_failing = is_failing
