"""The checkpoint store in an Azure Storage table: each record is one entity.

``_requests.py`` makes the requests and finds out the outcomes of writes, ``_renewals.py`` puts
renewals into transactions, ``_contents.py`` stores what is too large for an entity.
"""

import asyncio
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

from checkpointstores._fields import new_name, require_partition_id
from checkpointstores._requests import claimed, replacing_whole, stamped
from checkpointstores.tables import _entities as entities
from checkpointstores.tables._azure_table import TABLES, AzureTable
from checkpointstores.tables._contents import (
    Parts,
    content_values,
    delete_parts,
    parts_of,
    read_content,
    write_parts,
)
from checkpointstores.tables._renewals import renew
from checkpointstores.tables._requests import EntityAnswer, TableRequests
from checkpointstores.tables._table import (
    Entity,
    Key,
    Listing,
    RecordKind,
    Value,
    Write,
    group_record_key,
    partition_of,
    record_key,
)
from eventproc._base.azure_storage.connection import Connection, account_in
from eventproc._base.identity import AnyTokenCredential
from eventproc._base.logs import get_logger
from eventproc._base.network import HttpProxy
from eventproc._base.settings import SECRET, Count, PositiveSpan, checked
from eventproc._base.tasks import together
from eventproc._core.delivery.checkpoints import checkpoint_after
from eventproc.errors import (
    ConfigurationError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
)
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

TableCredential = AzureNamedKeyCredential | AzureSasCredential | AnyTokenCredential
"""An account key, a SAS token, or a token credential of azure-identity."""


RESOLUTION: Final = timedelta(seconds=1)
"""The resolution of ``as_of``, which is an HTTP date. The times of entities are finer."""

_READS: Final = 5
"""Most attempts to read a large content that other processors replace at the same time."""


class TableCheckpointStore(CheckpointStore):
    """Keeps records in a table of an Azure storage account, which costs much less than blobs.

    Build it from a connection string, or from the account's URL and a credential. One store may
    serve any number of groups; all processors of a group must use the same table. Processors of
    the Azure SDKs cannot share it.
    """

    @checked
    def __init__(
        self,
        account_url: Annotated[str, SECRET],
        table: str,
        credential: Annotated[TableCredential | None, SECRET] = None,
        *,
        create_table: bool = False,
        request_timeout: PositiveSpan = timedelta(seconds=10),
        concurrency_max: Count = 32,
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> None:
        """Build the store; ``open`` connects it.

        Args:
            account_url: For example ``https://contoso.table.core.windows.net``, optionally with a
                SAS token as its query.
            table: The name of the table: 3 to 63 letters and digits, a letter first.
            credential: ``None`` if the URL has a SAS token. The store does not close it. A token
                credential needs the role *Storage Table Data Contributor*.
            create_table: Create the table when the store is opened, if it does not exist. Off by
                default, because with a mistyped name the group would start without checkpoints and
                handle every event again.
            request_timeout: The time limit of a single request, which is tried up to three times.
            concurrency_max: Most requests at the same time.
            ca_bundle: A file with the certificates to trust; by default those of the system.
            http_proxy: The HTTP proxy to connect through; by default the one that the environment
                variable ``HTTPS_PROXY`` names, if any.
        """
        self._connection = Connection(
            TABLES,
            account_url,
            table,
            credential,
            request_timeout=request_timeout,
            ca_bundle=ca_bundle,
            http_proxy=http_proxy,
        )
        if credential is None and "sig=" not in urlsplit(account_url).query:
            raise ConfigurationError(
                "give a credential, or a SAS token as the query", setting="account_url"
            )
        self._entities = TableRequests(
            AzureTable(self._connection, is_created=create_table),
            get_logger("eventproc.stores.tables", table=self._connection.place),
            concurrency_max=concurrency_max,
        )
        self._seen: dict[tuple[ConsumerGroup, str], PartitionOwnership] = {}
        """Ownership records as last seen, to distinguish renewals from other claims."""

        self._parts: dict[Key, Parts | None] = {}
        """The parts of an entity's content when this store last read or wrote it."""

    @classmethod
    @checked
    def from_connection_string(
        cls,
        connection_string: Annotated[str, SECRET],
        table: str,
        *,
        create_table: bool = False,
        request_timeout: PositiveSpan = timedelta(seconds=10),
        concurrency_max: Count = 32,
        ca_bundle: str | None = None,
        http_proxy: HttpProxy | None = None,
    ) -> Self:
        """Build a store from a storage account's connection string.

        The other arguments are those of the class.

        Raises:
            ConfigurationError: the text is not a connection string of a storage account.
        """
        account_url, credential = account_in(connection_string, TABLES)
        return cls(
            account_url,
            table,
            credential,
            create_table=create_table,
            request_timeout=request_timeout,
            concurrency_max=concurrency_max,
            ca_bundle=ca_bundle,
            http_proxy=http_proxy,
        )

    def __repr__(self) -> str:
        return f"TableCheckpointStore({self._connection.place!r})"

    async def open(self) -> None:
        await self._entities.open()

    async def close(self) -> None:
        await self._entities.close()

    async def _list(self, group: ConsumerGroup, kind: RecordKind, *columns: str) -> Listing:
        return await self._entities.list(partition_of(group, kind), *columns)

    # --- ownership -------------------------------------------------------------------------------

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        listing = await self._list(group, RecordKind.OWNERSHIP, *entities.OWNERSHIP_COLUMNS)
        ownerships = tuple(
            entities.as_ownership(entity)
            for entity in self._well_formed(listing.entities, "partition_id")
        )
        self._seen |= {(group, each.partition_id): each for each in ownerships}
        return OwnershipSnapshot(ownerships=ownerships, as_of=listing.as_of, resolution=RESOLUTION)

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        for claim in claims:
            require_partition_id(claim.partition_id)
        writes = [_claim_write(group, claim) for claim in claims]
        renewals = {
            claim.partition_id: number
            for number, claim in enumerate(claims)
            if self._is_renewal(group, claim)
        }
        batch = {key: writes[number] for key, number in renewals.items()}
        alone = [number for number in range(len(claims)) if number not in renewals.values()]
        renewed, others = await asyncio.gather(
            self._renew(group, batch),
            together(*(self._entities.write(writes[number]) for number in alone)),
        )
        answers = dict(zip(alone, others, strict=True))
        answers |= {renewals[key]: answer for key, answer in renewed.items()}
        results = [_claim_result(claim, answers[number]) for number, claim in enumerate(claims)]
        self._seen |= {
            (group, each.ownership.partition_id): each.ownership
            for each in results
            if each.ownership is not None
        }
        return results

    def _is_renewal(self, group: ConsumerGroup, claim: OwnershipClaim) -> bool:
        """Whether the claim's owner has the partition already, as this store last saw it."""
        seen = self._seen.get((group, claim.partition_id))
        return seen is not None and (seen.owner_id, seen.etag) == (
            claim.owner_id,
            claim.expected_etag,
        )

    async def _renew(
        self, group: ConsumerGroup, renewals: Mapping[str, Write]
    ) -> dict[str, EntityAnswer]:
        async def read_all() -> dict[str, Entity]:
            listing = await self._list(group, RecordKind.OWNERSHIP, *entities.OWNERSHIP_COLUMNS)
            found = self._well_formed(listing.entities, "partition_id")
            return {str(entity.values["partition_id"]): entity for entity in found}

        return await renew(
            renewals,
            self._entities.write_together,
            read_all,
            self._entities.write,
        )

    # --- members ---------------------------------------------------------------------------------

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        listing = await self._list(
            group, RecordKind.MEMBER, *entities.MEMBER_COLUMNS, entities.RECORD_NAME
        )
        etags = {
            str(entity.values[entities.RECORD_NAME]): entity.etag
            for entity in listing.entities
            if entity.values.get(entities.RECORD_NAME)
        }
        members = [e for e in listing.entities if not e.values.get(entities.RECORD_NAME)]
        return MembershipSnapshot(
            members=tuple(
                map(entities.as_member, self._well_formed(members, "owner_id", "incarnation"))
            ),
            as_of=listing.as_of,
            resolution=RESOLUTION,
            record_etags=etags,
        )

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        key = record_key(group, RecordKind.MEMBER, member.owner_id)
        values = entities.member_values(member, new_name())
        answer = await self._entities.write(Write(key=key, values=values, etag=member.etag))
        stored = stamped(member, answer.written)
        return MemberResult(outcome=answer.outcome, member=stored, error=answer.error)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        key = record_key(group, RecordKind.MEMBER, member.owner_id)
        return await self._entities.delete(key, member.etag)

    # --- checkpoints -----------------------------------------------------------------------------

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        listing = await self._list(group, RecordKind.CHECKPOINT, *entities.POSITION_COLUMNS)
        found = self._well_formed(listing.entities, *entities.POSITION_COLUMNS)
        return [entities.as_partial(entity) for entity in found]

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        key = record_key(group, RecordKind.CHECKPOINT, require_partition_id(partition_id))
        entity, content = await self._read_whole(group, key)
        try:
            return None if entity is None else entities.as_checkpoint(entity, content or None)
        except (LookupError, TypeError, ValueError, struct.error) as error:
            raise StoreCorruptError(
                f"{self._connection.place}: the checkpoint of partition {partition_id} is damaged "
                f"({error!r}). Delete its entity, or `eventproc checkpoints reset`"
            ) from error

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        key = record_key(group, RecordKind.CHECKPOINT, require_partition_id(update.partition_id))
        known = await replacing_whole(self.read_checkpoint, group, update)
        if isinstance(known, CheckpointResult):
            return known
        replaces = known.replaces
        values = entities.checkpoint_values(update, new_name())
        state, etag = update.state, replaces.etag if replaces else None
        if state is not None:
            values["state_number"] = update.sequence_number
        elif replaces is None:
            state = b""
        answer = await self._write_whole(group, key, values, state, etag)
        return CheckpointResult(
            outcome=answer.outcome,
            checkpoint=stamped(checkpoint_after(known, replaces), answer.written),
            error=answer.error,
        )

    # --- group records ---------------------------------------------------------------------------

    async def read_record(self, group: ConsumerGroup, name: str) -> GroupRecord | None:
        entity, content = await self._read_whole(group, group_record_key(group, name))
        if entity is None:
            return None
        return GroupRecord(name=name, content=content, etag=entity.etag)

    async def write_record(self, group: ConsumerGroup, record: GroupRecord) -> RecordResult:
        key = group_record_key(group, record.name)
        values: dict[str, Value] = {
            entities.RECORD_NAME: record.name,
            entities.WRITE: new_name(),
        }
        answer = await self._write_whole(group, key, values, record.content, record.etag)
        stored = replace(record, etag=answer.written.etag) if answer.written else None
        return RecordResult(outcome=answer.outcome, record=stored, error=answer.error)

    # --- entities with content -------------------------------------------------------------------

    async def _read_whole(self, group: ConsumerGroup, key: Key) -> tuple[Entity | None, bytes]:
        """Read an entity and its content, both of one version."""
        for _ in range(_READS):
            entity = await self._entities.read(key)
            if entity is None:
                return None, b""
            content = await read_content(self._entities, group, entity)
            if content is not None:
                self._parts[key] = parts_of(entity.values)
                return entity, content
        raise StoreUnavailableError(
            f"table {self._connection.place}: parts of {key.row!r} were missing {_READS} times; "
            "another processor replaces it all the time, or they were deleted"
        )

    async def _write_whole(
        self,
        group: ConsumerGroup,
        key: Key,
        values: dict[str, Value],
        content: bytes | None,
        etag: str | None,
    ) -> EntityAnswer:
        """Write an entity and its content; ``None`` keeps the content that is stored."""
        parts = former = self._parts.get(key)
        if content is not None:
            version = str(values[entities.WRITE])
            values |= content_values(content, version)
            parts = parts_of(values)
            try:
                await write_parts(self._entities, group, content, version)
            except StoreError as error:
                return EntityAnswer(WriteOutcome.UNKNOWN, error=error)
        answer = await self._entities.write(Write(key=key, values=values, etag=etag))
        if answer.outcome is WriteOutcome.WON:
            self._parts[key] = parts
        if content is not None:
            stored = None if answer.found is None else parts_of(answer.found.values)
            if answer.outcome is WriteOutcome.WON:
                await delete_parts(self._entities, group, former)
            elif answer.outcome is WriteOutcome.LOST and stored != parts:
                await delete_parts(self._entities, group, parts)
        return answer

    def _well_formed(self, found: Sequence[Entity], *names: str) -> list[Entity]:
        """Return the entities that have these properties; log others once for each version."""
        whole = []
        for entity in found:
            if all(name in entity.values for name in names):
                whole.append(entity)
                continue
            self._entities.note_malformed(
                entity.etag,
                f"it lacks one of {', '.join(names)}, and is left out",
                entity=f"{entity.key.partition}/{entity.key.row}",
            )
        return whole


def _claim_write(group: ConsumerGroup, claim: OwnershipClaim) -> Write:
    return Write(
        key=record_key(group, RecordKind.OWNERSHIP, claim.partition_id),
        values=entities.ownership_values(claim, new_name()),
        etag=claim.expected_etag,
    )


def _claim_result(claim: OwnershipClaim, answer: EntityAnswer) -> ClaimResult:
    ownership = claimed(claim, answer.written)
    if answer.found is not None and "partition_id" in answer.found.values:
        ownership = entities.as_ownership(answer.found)
    return ClaimResult(claim=claim, outcome=answer.outcome, ownership=ownership, error=answer.error)
