"""The reference implementation of ``CheckpointStore``: dictionaries that several stores can share.

For tests, simulations and first steps. The records are lost when the process ends.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Lock

from checkpointstores._fields import require_partition_id
from checkpointstores._rows import groups_of
from eventproc._base.settings import checked
from eventproc._core.delivery.checkpoints import checkpoint_after
from eventproc.errors import ConfigurationError
from eventproc.models import (
    NOT_BEGUN,
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    GroupRecord,
    Member,
    MemberResult,
    MembershipSnapshot,
    OwnershipClaim,
    OwnershipSnapshot,
    PartitionOwnership,
    RecordResult,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore

__all__ = ["GroupRecords", "MemoryAccount", "MemoryCheckpointStore"]


def _steady_utc() -> Callable[[], datetime]:
    """Return a clock that starts at the wall clock's time and is monotonic from then on."""
    begun_at, begun_s = datetime.now(UTC), time.monotonic()
    return lambda: begun_at + timedelta(seconds=time.monotonic() - begun_s)


@dataclass(slots=True)
class GroupRecords:
    """All records of one consumer group."""

    ownership_by_partition: dict[str, PartitionOwnership] = field(default_factory=dict)
    checkpoint_by_partition: dict[str, Checkpoint] = field(default_factory=dict)
    member_by_owner: dict[str, Member] = field(default_factory=dict)
    record_by_name: dict[str, GroupRecord] = field(default_factory=dict)


class MemoryAccount:
    """The data of memory stores, and the clock for their time stamps.

    Several ``MemoryCheckpointStore`` on one account see the same records, like several processes on
    one storage account.
    """

    @checked
    def __init__(self, *, now: Callable[[], datetime] | None = None) -> None:
        """*now* is the account's clock; a simulation passes its virtual one."""
        self.now = now or _steady_utc()
        self.lock = Lock()
        """Held while records are used: each processor uses its store in a thread of its own."""

        self._records_by_group: dict[tuple[str, str, str], GroupRecords] = {}
        self._writes = 0

    def records(self, group: ConsumerGroup) -> GroupRecords:
        """Return the records of a group, for its stores to read and change."""
        return self._records_by_group.setdefault(group.key, GroupRecords())

    def groups(self, hub_of: ConsumerGroup | None) -> list[ConsumerGroup]:
        """Return the groups that have ownership records or checkpoints."""
        keys = (
            key
            for key, records in self._records_by_group.items()
            if records.ownership_by_partition or records.checkpoint_by_partition
        )
        return groups_of(sorted(keys), hub_of)

    def new_etag(self) -> str:
        """Return an ETag that was never used before."""
        self._writes += 1
        return f"0x{self._writes:08X}"


class MemoryCheckpointStore(CheckpointStore):
    """Keeps a group's records in this process.

    Each call first yields to other tasks once, like a call over a network, and then acts atomically
    with respect to tasks and threads.
    """

    @checked
    def __init__(
        self,
        account: MemoryAccount | None = None,
        *,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        """Use *account*, or a new account whose clock is *now*."""
        if account is not None and now is not None:
            raise ConfigurationError("an account has its own clock: give account or now")
        self.account = account or MemoryAccount(now=now)
        self._is_open = False

    def __repr__(self) -> str:
        return "MemoryCheckpointStore()"

    async def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        async with self._records(group) as records:
            return OwnershipSnapshot(
                ownerships=tuple(records.ownership_by_partition.values()), as_of=self.account.now()
            )

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        for claim in claims:
            require_partition_id(claim.partition_id)
        async with self._records(group) as records:
            return [self._claim(records.ownership_by_partition, claim) for claim in claims]

    def _claim(
        self, ownerships: dict[str, PartitionOwnership], claim: OwnershipClaim
    ) -> ClaimResult:
        current = ownerships.get(claim.partition_id)
        if claim.expected_etag != (current.etag if current else None):
            return ClaimResult(claim=claim, outcome=WriteOutcome.LOST, ownership=current)
        written = PartitionOwnership(
            partition_id=claim.partition_id,
            owner_id=claim.owner_id,
            etag=self.account.new_etag(),
            last_modified=self.account.now(),
            epoch=claim.epoch,
        )
        ownerships[claim.partition_id] = written
        return ClaimResult(claim=claim, outcome=WriteOutcome.WON, ownership=written)

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        async with self._records(group) as records:
            return MembershipSnapshot(
                members=tuple(records.member_by_owner.values()),
                as_of=self.account.now(),
                record_etags={r.name: str(r.etag) for r in records.record_by_name.values()},
            )

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        async with self._records(group) as records:
            current = records.member_by_owner.get(member.owner_id)
            if member.etag != (current.etag if current else None):
                return MemberResult(outcome=WriteOutcome.LOST)
            written = replace(
                member,
                etag=self.account.new_etag(),
                last_modified=self.account.now(),
            )
            records.member_by_owner[member.owner_id] = written
            return MemberResult(outcome=WriteOutcome.WON, member=written)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        async with self._records(group) as records:
            current = records.member_by_owner.get(member.owner_id)
            if current is not None and current.etag != member.etag:
                return WriteOutcome.LOST
            records.member_by_owner.pop(member.owner_id, None)
            return WriteOutcome.WON

    async def list_groups(self, hub_of: ConsumerGroup | None = None) -> Sequence[ConsumerGroup]:
        with self.account.lock:
            return self.account.groups(hub_of)

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        async with self._records(group) as records:
            return [
                replace(
                    checkpoint,
                    state=None,
                    state_sequence_number=None,
                    completed=(),
                    isolation=NOT_BEGUN,
                    is_partial=True,
                )
                for checkpoint in records.checkpoint_by_partition.values()
            ]

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        require_partition_id(partition_id)
        async with self._records(group) as records:
            return records.checkpoint_by_partition.get(partition_id)

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        require_partition_id(update.partition_id)
        async with self._records(group) as records:
            return self._update(records.checkpoint_by_partition, update)

    def _update(
        self, checkpoints: dict[str, Checkpoint], update: CheckpointUpdate
    ) -> CheckpointResult:
        current = checkpoints.get(update.partition_id)
        expected_etag = update.replaces.etag if update.replaces else None
        if expected_etag != (current.etag if current else None):
            return CheckpointResult(outcome=WriteOutcome.LOST)
        written = replace(
            checkpoint_after(update, current),
            etag=self.account.new_etag(),
            last_modified=self.account.now(),
        )
        checkpoints[update.partition_id] = written
        return CheckpointResult(outcome=WriteOutcome.WON, checkpoint=written)

    async def read_record(self, group: ConsumerGroup, name: str) -> GroupRecord | None:
        async with self._records(group) as records:
            return records.record_by_name.get(name)

    async def write_record(self, group: ConsumerGroup, record: GroupRecord) -> RecordResult:
        async with self._records(group) as records:
            current = records.record_by_name.get(record.name)
            if record.etag != (current.etag if current else None):
                return RecordResult(outcome=WriteOutcome.LOST)
            written = replace(record, etag=self.account.new_etag())
            records.record_by_name[record.name] = written
            return RecordResult(outcome=WriteOutcome.WON, record=written)

    @asynccontextmanager
    async def _records(self, group: ConsumerGroup) -> AsyncIterator[GroupRecords]:
        """Yield to other tasks once; then hold the lock while the caller uses the records.

        The caller must not await while it holds the lock: another task would block the event loop.
        """
        if not self._is_open:
            raise RuntimeError("the store is not open: use `async with store` or `await open()`")
        await asyncio.sleep(0)
        with self.account.lock:
            yield self.account.records(group)
