"""The records of a group that its processors read in each cycle: pauses and the published plan."""

from datetime import datetime

from eventproc._base.logs import ConditionLogger, Logger
from eventproc._core.ownership.pauses import NO_PAUSES, PAUSES_RECORD, Pauses, pauses_in, unreadable
from eventproc._core.ownership.published_plans import Publication
from eventproc._core.placement.published_plan import PLAN_RECORD, StoredPlan, plan_in
from eventproc.errors import StoreCorruptError
from eventproc.models import ConsumerGroup, GroupRecord, MembershipSnapshot, WriteOutcome
from eventproc.ports import CheckpointStore


class PausesReader:
    """Reads the pauses of a group, in each cycle in which they changed."""

    def __init__(self, store: CheckpointStore, group: ConsumerGroup, log: Logger) -> None:
        self._store = store
        self._group = group
        self._log = log
        self._etag: str | None = None
        """The ETag of the record that was read last."""

        self.known = NO_PAUSES
        """What was read last."""

        self._unreadable = ConditionLogger(log, "pauses_unreadable", "pauses_readable")

    async def read(self, etag: str | None, as_of: datetime) -> Pauses:
        """Return the pauses that are stored.

        If the record cannot be read, this logs it and keeps the pauses that it read last. If it has
        read none yet, the whole group counts as paused.

        Args:
            etag: The record's ETag in the newest listing; ``None`` if there is no record.
            as_of: The store's time of that listing.

        Raises:
            StoreUnavailableError: no answer; try again.
        """
        was_readable = not self._unreadable.count
        if etag == self._etag and was_readable:
            return self.known
        former = self.known
        try:
            # Also without an ETag: a listing that does not show the record may be old.
            record = await self._store.read_record(self._group, PAUSES_RECORD)
            self.known = pauses_in(record.content) if record else NO_PAUSES
        except StoreCorruptError as error:
            self._unreadable.note(is_error=True, error=str(error))
            if was_readable and self._etag is None:
                self.known = unreadable(error, as_of)
            return self.known
        self._unreadable.end()
        # If the record was written after the listing, the next cycle reads it again: harmless.
        self._etag = etag
        if self.known != former:
            group = self.known.group
            self._log.info(
                "pauses_changed",
                group_reason=None if group is None else group.reason,
                partition_ids=sorted(self.known.by_partition),
            )
        return self.known


class PlanStore:
    """Reads and writes the plan of a group that follows a published one."""

    def __init__(self, store: CheckpointStore, group: ConsumerGroup, log: Logger) -> None:
        self._store = store
        self._group = group
        self._log = log
        self._known: StoredPlan | None = None
        """What was read last; it is read again when its ETag changes."""

        self._unreadable = ConditionLogger(log, "plan_unreadable", "plan_readable")

    async def read(self, etag: str | None) -> StoredPlan | None:
        """Return the stored published plan. If it cannot be read, log this and return ``None``.

        Then this processor keeps the published plan that it follows, and publishes no other.

        Args:
            etag: The record's ETag in the newest listing; ``None`` if there is no record. If
                the ETag is the same as before, this reads nothing.

        Raises:
            StoreUnavailableError: no answer; try again.
        """
        if etag is None:
            return StoredPlan(etag=None, published=None)
        if self._known is not None and self._known.etag == etag:
            return self._known
        try:
            record = await self._store.read_record(self._group, PLAN_RECORD)
            published = plan_in(record.content) if record else None
        except StoreCorruptError as error:
            self._unreadable.note(is_error=True, error=str(error))
            return None
        self._unreadable.end()
        self._known = StoredPlan(etag=record.etag if record else None, published=published)
        return self._known

    async def publish(self, publication: Publication) -> None:
        """Write a published plan. If another member was first, the next poll shows its plan."""
        published = publication.published
        record = GroupRecord(name=PLAN_RECORD, content=published.as_bytes(), etag=publication.etag)
        result = await self._store.write_record(self._group, record)
        if result.outcome is WriteOutcome.WON:
            self._log.info(
                "plan_published",
                number=published.number,
                placement=published.placement,
                member_count=len(published.members),
            )


async def pauses_in_force(
    store: CheckpointStore, group: ConsumerGroup, present: MembershipSnapshot
) -> Pauses:
    """Return what is paused, as processors take it: an unreadable record pauses everything."""
    if PAUSES_RECORD not in present.record_etags:
        return NO_PAUSES
    record = await store.read_record(group, PAUSES_RECORD)
    try:
        return pauses_in(record.content) if record else NO_PAUSES
    except StoreCorruptError as error:
        return unreadable(error, present.as_of)
