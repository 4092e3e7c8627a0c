"""The checkpoint store over any blob container: what to write, on which condition, and what it was.

Rule 1: a write is repeated only inside one call, and only after an attempt without an answer.
Rule 2: a condition that fails then may have failed against our own first attempt, so the blob is
read and recognised by who wrote it; without such an attempt a failed condition is a lost race.
Rule 3: what nobody knows is unknown. Only the caller decides what to do about it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeVar

from checkpointstores import azure_layout as layout
from checkpointstores._blob_container import (
    BlobContainer,
    BlobItem,
    ConditionFailedError,
    Written,
)
from checkpointstores._checkpoint_blob import (
    as_checkpoint,
    body_after,
    is_written_by,
    may_keep_body,
    stored_checkpoint,
)
from checkpointstores._checkpoint_body import (
    BODY_BYTES_MAX,
    CheckpointBody,
    frame_body,
    unframe_body,
)
from checkpointstores._names import require_partition_id
from checkpointstores._reachability import Reachability
from checkpointstores._retry import retried
from checkpointstores.azure_layout import RecordKind
from eventproc.errors import StoreError, StoreUnavailableError
from eventproc.logs import get_logger
from eventproc.membership import Member, MemberResult, MembershipSnapshot
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    OwnershipClaim,
    OwnershipSnapshot,
    PartitionOwnership,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Opened:
    """What there is only while the store is open."""

    container: BlobContainer
    slots: asyncio.Semaphore


RESOLUTION: Final = timedelta(seconds=1)
"""Times travel as HTTP dates."""

_LEGACY_ETAG: Final = "legacy "
"""Begins the etag of a checkpoint found in an old lease: its first update makes a new blob."""

_LEGACY_BYTES_MAX: Final = 64 * 1024


class BlobRecords(CheckpointStore):
    """The records of groups in one container; who connects to it is for a subclass to say."""

    def __init__(self, place: str, *, concurrency_max: int, legacy_prefix: str | None) -> None:
        """*place* says which container this is, without any secret; for people."""
        self._place = place
        self._log = get_logger("eventproc.stores.blob", container=place)
        self._reachability = Reachability(self._log)
        self._concurrency_max = concurrency_max
        self._legacy_prefix = legacy_prefix
        self._odd_etag_by_name: dict[str, str] = {}
        self._opened: _Opened | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._place!r})"

    def _attach(self, container: BlobContainer) -> None:
        """Use this container from here on."""
        self._opened = _Opened(container, asyncio.Semaphore(self._concurrency_max))

    def _detach(self) -> None:
        """Use none any more."""
        self._opened = None

    # --- ownership -------------------------------------------------------------------------------

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        folder = layout.folder(group, RecordKind.OWNERSHIP)
        listing = await self._ask(lambda container: container.list(folder))
        ownerships = []
        for item in listing.items:
            partition_id = layout.part_below(folder, item.name)
            if partition_id is None or item.is_folder:
                continue
            if not any(key.lower() == "ownerid" for key in item.metadata):
                self._note_odd(item, "it names no owner, and counts as released")
            ownerships.append(_as_ownership(partition_id, layout.owner_id_in(item.metadata), item))
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
        name = layout.folder(group, RecordKind.OWNERSHIP) + claim.partition_id
        metadata = layout.ownership_metadata(claim.owner_id)
        outcome, written = await self._write(
            name,
            lambda container: _put_or_set(
                container, name, metadata, None, etag=claim.expected_etag
            ),
            is_mine=lambda found: layout.owner_id_in(found.metadata) == claim.owner_id,
        )
        ownership = _as_ownership(claim.partition_id, claim.owner_id, written) if written else None
        return ClaimResult(claim=claim, outcome=outcome, ownership=ownership)

    # --- members ---------------------------------------------------------------------------------

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        folder = layout.folder(group, RecordKind.MEMBER)
        listing = await self._ask(lambda container: container.list(folder))
        members = []
        for item in listing.items:
            member = layout.member_in(
                item.metadata, etag=item.etag, last_modified=item.last_modified
            )
            if member is not None:
                members.append(member)
            elif not item.is_folder:
                self._note_odd(item, "it names no member, and is left out")
        return MembershipSnapshot(
            members=tuple(members), as_of=listing.as_of, resolution=RESOLUTION
        )

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        name = layout.member_blob(group, member.owner_id)
        metadata = layout.member_metadata(member)
        outcome, written = await self._write(
            name,
            lambda container: _put_or_set(container, name, metadata, None, etag=member.etag),
            is_mine=lambda found: found.metadata == metadata,
        )
        stored = (
            replace(member, etag=written.etag, last_modified=written.last_modified)
            if written
            else None
        )
        return MemberResult(outcome=outcome, member=stored)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        name = layout.member_blob(group, member.owner_id)
        try:
            if member.etag is not None:
                etag = member.etag
                await self._ask(lambda container: container.delete(name, etag=etag))
                return WriteOutcome.WON
        except ConditionFailedError:
            pass  # changed, or gone: services differ in how they refuse to delete what is not there
        except StoreError:
            return WriteOutcome.UNKNOWN
        try:
            found = await self._ask(lambda container: container.read(name))
        except StoreError:
            return WriteOutcome.UNKNOWN
        return WriteOutcome.WON if found is None else WriteOutcome.LOST

    # --- checkpoints -----------------------------------------------------------------------------

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        folder = layout.folder(group, RecordKind.CHECKPOINT)
        listing = await self._ask(lambda container: container.list(folder))
        checkpoints = {}
        for item in listing.items:
            partition_id = layout.part_below(folder, item.name)
            if partition_id is None or item.is_folder:
                continue
            position = layout.position_in(item.metadata)
            if not position.is_usable:
                self._note_odd(item, "it names no position, and is left out")
                continue
            checkpoints[partition_id] = as_checkpoint(partition_id, position, item, None)
        return [*checkpoints.values(), *await self._list_legacy(group, known=set(checkpoints))]

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        name = layout.folder(group, RecordKind.CHECKPOINT) + require_partition_id(partition_id)
        item = await self._ask(
            lambda container: container.read(name, body_bytes_max=BODY_BYTES_MAX)
        )
        if item is None or item.is_folder:
            return await self._read_legacy(group, partition_id)
        position = layout.position_in(item.metadata)
        if not position.is_usable:
            self._note_odd(item, "it names no position")
        return as_checkpoint(partition_id, position, item, self._body_of(item))

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        name = layout.folder(group, RecordKind.CHECKPOINT) + require_partition_id(
            update.partition_id
        )
        metadata = layout.checkpoint_metadata(update.offset, update.sequence_number, update.writer)
        replaces = update.replaces
        if replaces is not None and replaces.is_partial and update.state is None:
            # The body has to be known: to be kept, or to be written anew around the same state.
            try:
                whole = await self.read_checkpoint(group, update.partition_id)
            except StoreError:
                return CheckpointResult(outcome=WriteOutcome.UNKNOWN)
            if whole is None or whole.etag != replaces.etag:
                return CheckpointResult(outcome=WriteOutcome.LOST)
            replaces = whole
        etag = replaces.etag if replaces else None
        if etag is not None and etag.startswith(_LEGACY_ETAG):
            etag = None
        body = body_after(update, replaces)
        framed = None if may_keep_body(update, replaces) else frame_body(body)
        outcome, written = await self._write(
            name,
            lambda container: _put_or_set(container, name, metadata, framed, etag=etag),
            is_mine=lambda found: is_written_by(update, framed, found),
            body_bytes_max=0 if framed is None else BODY_BYTES_MAX,
        )
        return CheckpointResult(
            outcome=outcome,
            checkpoint=stored_checkpoint(update, body, written) if written else None,
        )

    def _body_of(self, item: BlobItem) -> CheckpointBody:
        body = unframe_body(item.body, item.name)
        if body is None and item.body:
            self._note_odd(item, "its body is none of ours, and is ignored")
        return body or CheckpointBody()

    # --- leases of the time before ---------------------------------------------------------------

    async def _list_legacy(self, group: ConsumerGroup, known: set[str]) -> list[Checkpoint]:
        if self._legacy_prefix is None:
            return []
        folder = layout.legacy_folder(self._legacy_prefix, group)
        listing = await self._ask(lambda container: container.list(folder))
        parts = {layout.part_below(folder, item.name) for item in listing.items} - {None, *known}
        found = await asyncio.gather(*(self._read_legacy(group, part) for part in parts if part))
        return [checkpoint for checkpoint in found if checkpoint is not None]

    async def _read_legacy(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        if self._legacy_prefix is None:
            return None
        name = layout.legacy_folder(self._legacy_prefix, group) + partition_id
        item = await self._ask(
            lambda container: container.read(name, body_bytes_max=_LEGACY_BYTES_MAX)
        )
        position = layout.legacy_position(item.body) if item else None
        if item is None or position is None:
            return None
        checkpoint = as_checkpoint(partition_id, position, item, CheckpointBody())
        return replace(checkpoint, etag=_LEGACY_ETAG + item.etag)

    # --- round trips -----------------------------------------------------------------------------

    async def _ask(self, call: Callable[[BlobContainer], Awaitable[T]]) -> T:
        """Ask, a few times if need be."""
        if self._opened is None:
            raise RuntimeError("the store is not open: use `async with store` or `await open()`")
        container = self._opened.container
        try:
            async with self._opened.slots:
                answer = await retried(lambda: call(container))
        except ConditionFailedError:
            self._reachability.answered()
            raise
        except StoreError as error:
            self._reachability.failed(error)
            raise
        self._reachability.answered()
        return answer

    async def _write(
        self,
        name: str,
        write: Callable[[BlobContainer], Awaitable[Written]],
        *,
        is_mine: Callable[[BlobItem], bool],
        body_bytes_max: int = 0,
    ) -> tuple[WriteOutcome, Written | None]:
        """Write, a few times if need be, and say what became of it."""
        is_unanswered = False

        async def attempt(container: BlobContainer) -> Written:
            nonlocal is_unanswered
            try:
                return await write(container)
            except StoreUnavailableError:
                is_unanswered = True
                raise

        try:
            return WriteOutcome.WON, await self._ask(attempt)
        except ConditionFailedError as error:
            if not is_unanswered and not error.was_repeated:
                return WriteOutcome.LOST, None
        except StoreError:
            return WriteOutcome.UNKNOWN, None
        try:
            found = await self._ask(
                lambda container: container.read(name, body_bytes_max=body_bytes_max)
            )
        except StoreError:
            return WriteOutcome.UNKNOWN, None
        if found is not None and is_mine(found):
            return WriteOutcome.WON, Written(etag=found.etag, last_modified=found.last_modified)
        return WriteOutcome.LOST, None

    def _note_odd(self, item: BlobItem, what: str) -> None:
        """Log an odd blob once for each version of it, not for each time that it is met."""
        if self._odd_etag_by_name.get(item.name) != item.etag:
            self._odd_etag_by_name[item.name] = item.etag
            self._log.warning("store_record_odd", blob=item.name, etag=item.etag, reason=what)


async def _put_or_set(
    container: BlobContainer,
    name: str,
    metadata: dict[str, str],
    body: bytes | None,
    *,
    etag: str | None,
) -> Written:
    """One conditional write; a body of ``None`` is left as it is, or made empty."""
    if body is None and etag is not None:
        return await container.set_metadata(name, metadata, etag=etag)
    return await container.put(name, metadata, body or b"", etag=etag)


def _as_ownership(
    partition_id: str, owner_id: str | None, version: BlobItem | Written
) -> PartitionOwnership:
    return PartitionOwnership(
        partition_id=partition_id,
        owner_id=owner_id,
        etag=version.etag,
        last_modified=version.last_modified,
    )
