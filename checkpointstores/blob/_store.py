"""The checkpoint store in an Azure Blob container, which Azure's own processors can share.

Each record is one blob; ``_requests.py`` makes the requests, and finds out the outcomes of writes.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Final, Self

from checkpointstores._fields import new_name, require_partition_id
from checkpointstores._requests import claimed, replacing_whole, stamped
from checkpointstores.blob import _layout as layout
from checkpointstores.blob._azure_container import AzureContainer
from checkpointstores.blob._body import (
    BODY_BYTES_MAX,
    RECORD_BODY_BYTES_MAX,
    CheckpointBody,
    frame_body,
    frame_record,
    unframe_body,
    unframe_record,
)
from checkpointstores.blob._checkpoint import (
    LegacyLeases,
    as_checkpoint,
    etag_to_replace,
    is_written_by,
    may_keep_body,
)
from checkpointstores.blob._container import BlobItem
from checkpointstores.blob._layout import RecordKind
from checkpointstores.blob._requests import BlobRequests
from checkpointstores.blob._spelling import SpellingWatch
from eventproc._base.azure_storage.blobs import BLOBS, BlobCredential
from eventproc._base.azure_storage.connection import Connection, account_in
from eventproc._base.logs import get_logger
from eventproc._base.network import HttpProxy
from eventproc._base.settings import SECRET, Count, PositiveSpan, checked
from eventproc._core.delivery.checkpoints import checkpoint_after
from eventproc.errors import ConfigurationError
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
    RecordResult,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore

RESOLUTION: Final = timedelta(seconds=1)  # HTTP dates have whole seconds


class BlobCheckpointStore(CheckpointStore):
    """Keeps records in a blob container, which processors of the Azure SDKs may share.

    Build it from a connection string, or from the account's URL and a credential. One store may
    serve any number of groups; all processors of a group must use the same container.
    """

    @checked
    def __init__(
        self,
        account_url: Annotated[str, SECRET],
        container: str,
        credential: Annotated[BlobCredential | None, SECRET] = None,
        *,
        create_container: bool = False,
        request_timeout: PositiveSpan = timedelta(seconds=10),
        concurrency_max: Count = 32,
        legacy_prefix: str | None = None,
        namespace: str | None = None,
        exact_names: bool = False,
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> None:
        """Build the store; ``open`` connects it.

        Args:
            account_url: For example ``https://contoso.blob.core.windows.net``, optionally with a
                SAS token as its query.
            container: The name of the container.
            credential: ``None`` if the URL has a SAS token. The store does not close it. A token
                credential may be given to a source as well; it needs the role *Storage Blob Data
                Contributor*.
            create_container: Create the container when the store is opened, if it does not exist.
                Off by default, because with a mistyped name the group would start without
                checkpoints and handle every event again; also, no other request needs this right.
            request_timeout: The time limit of a single request, which is tried up to three times.
            concurrency_max: Most requests at the same time.
            legacy_prefix: For a partition without a checkpoint, read a lease of
                ``EventProcessorHost`` in ``{legacy_prefix}{group}/{partition}``, or of Azure
                Functions with the prefix ``{namespace}/{hub}/``. Leases are never written.
            namespace: The beginning of the blobs' names, instead of the group's namespace, to
                share a group with processors that spell the namespace differently. The JavaScript
                and Java SDKs do so if the connection string has a port.
            exact_names: Write the names of namespace, hub and group as they are configured, to
                share a group with processors of the Go or Rust SDK. By default they are in lower
                case, as the other SDKs write them.
            ca_bundle: A file with the certificates to trust; by default those of the system.
            http_proxy: The HTTP proxy to connect through; by default the one that the environment
                variable ``HTTPS_PROXY`` names, if any.
        """
        if namespace is not None:
            _check_namespace(namespace)
        self._connection = Connection(
            BLOBS,
            account_url,
            container,
            credential,
            request_timeout=request_timeout,
            ca_bundle=ca_bundle,
            http_proxy=http_proxy,
        )
        self._namespace = namespace
        self._exact_names = exact_names
        log = get_logger("eventproc.stores.blob", container=self._connection.place)
        azure = AzureContainer(self._connection, is_created=create_container, log=log)
        self._blobs = BlobRequests(azure, log, concurrency_max=concurrency_max)
        self._legacy = LegacyLeases(self._blobs, legacy_prefix)
        self._spelling = SpellingWatch(self._blobs.list, log)

    @classmethod
    @checked
    def from_connection_string(
        cls,
        connection_string: Annotated[str, SECRET],
        container: str,
        *,
        create_container: bool = False,
        request_timeout: PositiveSpan = timedelta(seconds=10),
        concurrency_max: Count = 32,
        legacy_prefix: str | None = None,
        namespace: str | None = None,
        exact_names: bool = False,
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> Self:
        """Build a store from a storage account's connection string.

        Or from where that is: ``file:PATH``, in one line, or ``env:NAME``. The other arguments are
        those of the class.

        Raises:
            ConfigurationError: the text is not a connection string of a storage account, or names
                only other services of it.
        """
        account_url, credential = account_in(connection_string, BLOBS)
        return cls(
            account_url,
            container,
            credential,
            create_container=create_container,
            request_timeout=request_timeout,
            concurrency_max=concurrency_max,
            legacy_prefix=legacy_prefix,
            namespace=namespace,
            exact_names=exact_names,
            ca_bundle=ca_bundle,
            http_proxy=http_proxy,
        )

    def __repr__(self) -> str:
        return f"BlobCheckpointStore({self._connection.place!r})"

    async def open(self) -> None:
        await self._blobs.open()

    async def close(self) -> None:
        await self._blobs.close()

    def _named(self, group: ConsumerGroup) -> ConsumerGroup:
        """Return the group with the namespace that its blobs' names begin with."""
        if self._namespace is None:
            return group
        return replace(group, fully_qualified_namespace=self._namespace)

    def _home(self, group: ConsumerGroup) -> str:
        return layout.home(self._named(group), exact_names=self._exact_names)

    def _folder(self, group: ConsumerGroup, kind: RecordKind) -> str:
        return layout.folder(self._home(group), kind)

    async def list_groups(self, hub_of: ConsumerGroup | None = None) -> Sequence[ConsumerGroup]:
        hub = "" if hub_of is None else self._home(hub_of).rpartition("/")[0] + "/"
        return layout.groups_in(item.name for item in (await self._blobs.list(hub)).items)

    # --- ownership -------------------------------------------------------------------------------

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        await self._spelling.check(self._named(group), self._home(group))
        folder = self._folder(group, RecordKind.OWNERSHIP)
        listing = await self._blobs.list(folder)
        ownerships = []
        for item in listing.items:
            partition_id = layout.part_below(folder, item.name)
            if partition_id is None or item.is_folder:
                continue
            if not any(key.lower() == "ownerid" for key in item.metadata):
                self._note_malformed(item, "it names no owner, and counts as released")
            ownerships.append(layout.as_ownership(partition_id, item))
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
        answer = await self._blobs.write(
            name,
            metadata,
            etag=claim.expected_etag,
            is_mine=lambda found: layout.owner_in(found.metadata) == (claim.owner_id, claim.epoch),
        )
        return ClaimResult(
            claim=claim,
            outcome=answer.outcome,
            ownership=claimed(claim, answer.written),
            error=answer.error,
        )

    # --- members ---------------------------------------------------------------------------------

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        folder = self._folder(group, RecordKind.MEMBER)
        listing = await self._blobs.list(folder)
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
        name = layout.member_blob(self._home(group), member.owner_id)
        metadata = layout.member_metadata(member)
        answer = await self._blobs.write(
            name,
            metadata,
            etag=member.etag,
            is_mine=lambda found: found.metadata == metadata,
        )
        stored = stamped(member, answer.written)
        return MemberResult(outcome=answer.outcome, member=stored, error=answer.error)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        name = layout.member_blob(self._home(group), member.owner_id)
        return await self._blobs.delete(name, member.etag)

    # --- checkpoints -----------------------------------------------------------------------------

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        folder = self._folder(group, RecordKind.CHECKPOINT)
        listing = await self._blobs.list(folder)
        checkpoints, known = [], set()
        for item in listing.items:
            partition_id = layout.part_below(folder, item.name)
            if partition_id is None or item.is_folder:
                continue
            known.add(partition_id)
            position = layout.position_in(item.metadata)
            if not position.is_usable:
                self._note_malformed(item, "it names no position, and is left out")
                continue
            checkpoints.append(as_checkpoint(partition_id, position, item, None))
        return [*checkpoints, *await self._legacy.list(group, known)]

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        name = self._folder(group, RecordKind.CHECKPOINT) + require_partition_id(partition_id)
        item = await self._blobs.read(name, body_bytes_max=BODY_BYTES_MAX)
        if item is None or item.is_folder:
            return await self._legacy.read(group, partition_id)
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
        known = await replacing_whole(self.read_checkpoint, group, update)
        if isinstance(known, CheckpointResult):
            return known
        stored = checkpoint_after(known, known.replaces)
        framed = None if may_keep_body(known, known.replaces) else frame_body(stored)
        answer = await self._blobs.write(
            name,
            metadata,
            framed,
            etag=etag_to_replace(known.replaces),
            is_mine=lambda found: is_written_by(update, framed, found),
        )
        return CheckpointResult(
            outcome=answer.outcome,
            checkpoint=stamped(stored, answer.written),
            error=answer.error,
        )

    def _body_of(self, item: BlobItem) -> CheckpointBody:
        body = unframe_body(item.body, item.name)
        if body is None and item.body:
            self._note_malformed(item, "its body is not in eventproc's format, and is ignored")
        return body or CheckpointBody()

    # --- group records ---------------------------------------------------------------------------

    async def read_record(self, group: ConsumerGroup, name: str) -> GroupRecord | None:
        blob = layout.record_blob(self._home(group), name)
        item = await self._blobs.read(blob, body_bytes_max=RECORD_BODY_BYTES_MAX)
        if item is None:
            return None
        return GroupRecord(name=name, content=unframe_record(item.body, blob), etag=item.etag)

    async def write_record(self, group: ConsumerGroup, record: GroupRecord) -> RecordResult:
        blob = layout.record_blob(self._home(group), record.name)
        # Two processors may write the same content, so each write gets an id of its own.
        metadata = layout.record_metadata(record.name, new_name())
        answer = await self._blobs.write(
            blob,
            metadata,
            frame_record(record.content),
            etag=record.etag,
            is_mine=lambda found: found.metadata == metadata,
        )
        stored = replace(record, etag=answer.written.etag) if answer.written else None
        return RecordResult(outcome=answer.outcome, record=stored, error=answer.error)

    def _note_malformed(self, item: BlobItem, reason: str) -> None:
        self._blobs.note_malformed(item.etag, reason, blob=item.name)


def _check_namespace(namespace: str) -> None:
    try:
        ConsumerGroup(fully_qualified_namespace=namespace, eventhub_name="any")
    except ConfigurationError as error:
        # Name the parameter that was given: the namespace in the blobs' names.
        error.name_settings({"fully_qualified_namespace": "namespace"})
        raise
