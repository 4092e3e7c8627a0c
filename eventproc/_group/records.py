"""The records of a group that its processors read in each cycle: pauses and schema."""

from datetime import datetime

from eventproc._base.logs import ConditionLogger, Logger
from eventproc._core.ownership.pauses import NO_PAUSES, PAUSES_RECORD, Pauses, pauses_in, unreadable
from eventproc._core.ownership.schemas import Publication
from eventproc._core.placement.schema import SCHEMA_RECORD, StoredSchema, schema_in
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


class SchemaStore:
    """Reads and writes the schema of a group that follows a published plan."""

    def __init__(self, store: CheckpointStore, group: ConsumerGroup, log: Logger) -> None:
        self._store = store
        self._group = group
        self._log = log
        self._known: StoredSchema | None = None
        """What was read last; it is read again when its ETag changes."""

        self._unreadable = ConditionLogger(log, "schema_unreadable", "schema_readable")

    async def read(self, etag: str | None) -> StoredSchema | None:
        """Return the stored schema. If it cannot be read, log this and return ``None``.

        Then this processor keeps the schema that it follows, and publishes no other.

        Args:
            etag: The record's ETag in the newest listing; ``None`` if there is no record. If
                the ETag is the same as before, this reads nothing.

        Raises:
            StoreUnavailableError: no answer; try again.
        """
        if etag is None:
            return StoredSchema(etag=None, schema=None)
        if self._known is not None and self._known.etag == etag:
            return self._known
        try:
            record = await self._store.read_record(self._group, SCHEMA_RECORD)
            schema = schema_in(record.content) if record else None
        except StoreCorruptError as error:
            self._unreadable.note(is_error=True, error=str(error))
            return None
        self._unreadable.end()
        self._known = StoredSchema(etag=record.etag if record else None, schema=schema)
        return self._known

    async def publish(self, publication: Publication) -> None:
        """Write a schema. If another member was first, the next poll shows its schema."""
        schema = publication.schema
        record = GroupRecord(name=SCHEMA_RECORD, content=schema.as_bytes(), etag=publication.etag)
        result = await self._store.write_record(self._group, record)
        if result.outcome is WriteOutcome.WON:
            self._log.info(
                "schema_published",
                number=schema.number,
                placement=schema.placement,
                member_count=len(schema.members),
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
