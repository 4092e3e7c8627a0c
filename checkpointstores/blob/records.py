"""The checkpoint store over any blob container: each record is one blob.

``round_trips.py`` makes the requests, and finds out the outcomes of writes.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final, TypeVar

from checkpointstores.blob import azure_layout as layout
from checkpointstores.blob.azure_layout import RecordKind
from checkpointstores.blob.body import BODY_BYTES_MAX, CheckpointBody, frame_body, unframe_body
from checkpointstores.blob.checkpoint import as_checkpoint, is_written_by, may_keep_body
from checkpointstores.blob.container import (
    BlobItem,
    Listing,
    Right,
    Written,
    put_or_set,
)
from checkpointstores.blob.group_record import RECORD_BODY_BYTES_MAX, frame_record, unframe_record
from checkpointstores.blob.round_trips import RoundTrips
from checkpointstores.blob.spelling import SpellingWatch
from checkpointstores.names import new_name, require_partition_id
from checkpointstores.requests import ConditionFailedError
from eventproc.concurrency.tasks import together
from eventproc.core.checkpoints import checkpoint_after
from eventproc.errors import StoreError
from eventproc.models import (
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

T = TypeVar("T")
RecordT = TypeVar("RecordT", Checkpoint, Member)

RESOLUTION: Final = timedelta(seconds=1)  # HTTP dates have whole seconds
_LEGACY_ETAG: Final = "legacy "
"""Prefix of the ETag of a checkpoint from a legacy lease. Its first update creates a new blob."""

_LEGACY_BYTES_MAX: Final = 64 * 1024


class BlobRecords(RoundTrips, CheckpointStore):
    """The records of groups in one container. A subclass connects to the container."""

    def __init__(
        self,
        place: str,
        *,
        concurrency_max: int,
        legacy_prefix: str | None,
        namespace: str | None = None,
    ) -> None:
        """*place* names the container without secrets, for messages and logs."""
        super().__init__(place, concurrency_max=concurrency_max)
        self._legacy_prefix = legacy_prefix
        self._namespace = namespace
        self._spelling = SpellingWatch(self._list, self._log)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._place!r})"

    def _named(self, group: ConsumerGroup) -> ConsumerGroup:
        """Return the group with the namespace that its blobs' names begin with."""
        if self._namespace is None:
            return group
        return replace(group, fully_qualified_namespace=self._namespace)

    def _folder(self, group: ConsumerGroup, kind: RecordKind) -> str:
        return layout.folder(self._named(group), kind)

    async def _list(self, prefix: str) -> Listing:
        return await self._ask(Right.LIST, lambda container: container.list(prefix))

    # --- ownership -------------------------------------------------------------------------------

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        await self._spelling.check(self._named(group))
        folder = self._folder(group, RecordKind.OWNERSHIP)
        listing = await self._list(folder)
        ownerships = []
        for item in listing.items:
            partition_id = layout.part_below(folder, item.name)
            if partition_id is None or item.is_folder:
                continue
            if not any(key.lower() == "ownerid" for key in item.metadata):
                self._note_malformed(item, "it names no owner, and counts as released")
            owner_id, epoch = layout.owner_in(item.metadata)
            ownerships.append(_as_ownership(partition_id, owner_id, epoch, item))
        return OwnershipSnapshot(
            ownerships=tuple(ownerships), as_of=listing.as_of, resolution=RESOLUTION
        )

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        for claim in claims:
            require_partition_id(claim.partition_id)
        return await asyncio.gather(*(self._claim(group, claim) for claim in claims))

    async def _claim(self, group: ConsumerGroup, claim: OwnershipClaim) -> ClaimResult:
        name = self._folder(group, RecordKind.OWNERSHIP) + claim.partition_id
        metadata = layout.ownership_metadata(claim.owner_id, claim.epoch)
        answer = await self._write(
            name,
            lambda container: put_or_set(container, name, metadata, None, etag=claim.expected_etag),
            is_mine=lambda found: layout.owner_in(found.metadata) == (claim.owner_id, claim.epoch),
        )
        ownership = (
            _as_ownership(claim.partition_id, claim.owner_id, claim.epoch, answer.written)
            if answer.written
            else None
        )
        return ClaimResult(
            claim=claim, outcome=answer.outcome, ownership=ownership, error=answer.error
        )

    # --- members ---------------------------------------------------------------------------------

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        folder = self._folder(group, RecordKind.MEMBER)
        listing = await self._list(folder)
        members, etags = [], {}
        for item in listing.items:
            record_name = layout.record_in(item.metadata)
            if record_name is not None:
                etags[record_name] = item.etag
                continue
            member = layout.member_in(
                item.metadata, etag=item.etag, last_modified=item.last_modified
            )
            if member is not None:
                members.append(member)
            elif not item.is_folder:
                self._note_malformed(item, "it names no member, and is left out")
        return MembershipSnapshot(
            members=tuple(members),
            as_of=listing.as_of,
            resolution=RESOLUTION,
            record_etags=etags,
        )

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        name = layout.member_blob(self._named(group), member.owner_id)
        metadata = layout.member_metadata(member)
        answer = await self._write(
            name,
            lambda container: put_or_set(container, name, metadata, None, etag=member.etag),
            is_mine=lambda found: found.metadata == metadata,
        )
        stored = _stamped(member, answer.written)
        return MemberResult(outcome=answer.outcome, member=stored, error=answer.error)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        name = layout.member_blob(self._named(group), member.owner_id)
        try:
            if member.etag is not None:
                etag = member.etag
                await self._ask(Right.DELETE, lambda container: container.delete(name, etag=etag))
                return WriteOutcome.WON
        except ConditionFailedError:
            pass  # changed or deleted: servers answer differently for a blob that does not exist
        except StoreError:
            return WriteOutcome.UNKNOWN
        try:
            found = await self._ask(Right.READ, lambda container: container.read(name))
        except StoreError:
            return WriteOutcome.UNKNOWN
        return WriteOutcome.WON if found is None else WriteOutcome.LOST

    # --- checkpoints -----------------------------------------------------------------------------

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        folder = self._folder(group, RecordKind.CHECKPOINT)
        listing = await self._list(folder)
        checkpoints = {}
        for item in listing.items:
            partition_id = layout.part_below(folder, item.name)
            if partition_id is None or item.is_folder:
                continue
            position = layout.position_in(item.metadata)
            if not position.is_usable:
                self._note_malformed(item, "it names no position, and is left out")
                continue
            checkpoints[partition_id] = as_checkpoint(partition_id, position, item, None)
        return [*checkpoints.values(), *await self._list_legacy(group, known=set(checkpoints))]

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        name = self._folder(group, RecordKind.CHECKPOINT) + require_partition_id(partition_id)
        item = await self._ask(
            Right.READ, lambda container: container.read(name, body_bytes_max=BODY_BYTES_MAX)
        )
        if item is None or item.is_folder:
            return await self._read_legacy(group, partition_id)
        position = layout.position_in(item.metadata)
        if not position.is_usable:
            self._note_malformed(item, "it names no position")
        return as_checkpoint(partition_id, position, item, self._body_of(item))

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        name = self._folder(group, RecordKind.CHECKPOINT) + require_partition_id(
            update.partition_id
        )
        metadata = layout.checkpoint_metadata(update.offset, update.sequence_number, update.writer)
        replaces = update.replaces
        if replaces is not None and replaces.is_partial and update.state is None:
            # The new body is made from the stored one, which a listing does not return.
            try:
                whole = await self.read_checkpoint(group, update.partition_id)
            except StoreError as error:
                return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=error)
            if whole is None or whole.etag != replaces.etag:
                return CheckpointResult(outcome=WriteOutcome.LOST)
            replaces = whole
        etag = replaces.etag if replaces else None
        if etag is not None and etag.startswith(_LEGACY_ETAG):
            etag = None
        stored = checkpoint_after(update, replaces)
        framed = None if may_keep_body(update, replaces) else frame_body(stored)
        answer = await self._write(
            name,
            lambda container: put_or_set(container, name, metadata, framed, etag=etag),
            is_mine=lambda found: is_written_by(update, framed, found),
            body_bytes_max=0 if framed is None else BODY_BYTES_MAX,
        )
        return CheckpointResult(
            outcome=answer.outcome,
            checkpoint=_stamped(stored, answer.written),
            error=answer.error,
        )

    def _body_of(self, item: BlobItem) -> CheckpointBody:
        body = unframe_body(item.body, item.name)
        if body is None and item.body:
            self._note_malformed(item, "its body is not in eventproc's format, and is ignored")
        return body or CheckpointBody()

    # --- group records ---------------------------------------------------------------------------

    async def read_record(self, group: ConsumerGroup, name: str) -> GroupRecord | None:
        blob = layout.record_blob(self._named(group), name)
        item = await self._ask(
            Right.READ,
            lambda container: container.read(blob, body_bytes_max=RECORD_BODY_BYTES_MAX),
        )
        if item is None:
            return None
        return GroupRecord(name=name, content=unframe_record(item.body, blob), etag=item.etag)

    async def write_record(self, group: ConsumerGroup, record: GroupRecord) -> RecordResult:
        blob = layout.record_blob(self._named(group), record.name)
        # Two processors may write the same content, so each write gets an id of its own.
        metadata = layout.record_metadata(record.name, new_name())
        body = frame_record(record.content)
        answer = await self._write(
            blob,
            lambda container: container.put(blob, metadata, body, etag=record.etag),
            is_mine=lambda found: found.metadata == metadata,
        )
        stored = replace(record, etag=answer.written.etag) if answer.written else None
        return RecordResult(outcome=answer.outcome, record=stored, error=answer.error)

    # --- legacy leases (EventProcessorHost, Azure Functions) -------------------------------------

    async def _list_legacy(self, group: ConsumerGroup, known: set[str]) -> list[Checkpoint]:
        if self._legacy_prefix is None:
            return []
        folder = layout.legacy_folder(self._legacy_prefix, group)
        listing = await self._list(folder)
        parts = {layout.part_below(folder, item.name) for item in listing.items} - {None, *known}
        found = await together(*(self._read_legacy(group, part) for part in parts if part))
        return [checkpoint for checkpoint in found if checkpoint is not None]

    async def _read_legacy(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        if self._legacy_prefix is None:
            return None
        name = layout.legacy_folder(self._legacy_prefix, group) + partition_id
        item = await self._ask(
            Right.READ, lambda container: container.read(name, body_bytes_max=_LEGACY_BYTES_MAX)
        )
        position = layout.legacy_position(item.body) if item else None
        if item is None or position is None:
            return None
        checkpoint = as_checkpoint(partition_id, position, item, CheckpointBody())
        return replace(checkpoint, etag=_LEGACY_ETAG + item.etag)


def _stamped(record: RecordT, written: Written | None) -> RecordT | None:
    """Return a record with its ETag and time; ``None`` if it was not written."""
    if written is None:
        return None
    return replace(record, etag=written.etag, last_modified=written.last_modified)


def _as_ownership(
    partition_id: str, owner_id: str | None, epoch: int, version: BlobItem | Written
) -> PartitionOwnership:
    return PartitionOwnership(
        partition_id=partition_id,
        owner_id=owner_id,
        epoch=epoch,
        etag=version.etag,
        last_modified=version.last_modified,
    )
