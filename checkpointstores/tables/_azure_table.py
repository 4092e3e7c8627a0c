"""A table through Azure's client. Each call is one request without retries."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import EdmType, EntityProperty, TableEntity, UpdateMode
from azure.data.tables.aio import TableClient

from checkpointstores._requests import Written, connect
from checkpointstores.tables._table import Entity, Key, Listing, Value, Values, Write
from eventproc._base.azure_storage.answers import ConditionFailedError, Right, Service
from eventproc._base.azure_storage.connection import Connection, if_is, unless_exists

_TIME_IN_ETAG: Final = re.compile(r"datetime'([^']+)'")
_INT32: Final = range(-(2**31), 2**31)
_SYSTEM: Final = ("PartitionKey", "RowKey", "Timestamp")
_NO_ENTITY: Final = Key(partition="!", row="!")
"""The key of an entity that does not exist. Listing its partition checks the right to read."""


def _account_of(connection_string: str) -> tuple[str, Any]:
    client = TableClient.from_connection_string(connection_string, "any")
    key = client.credential
    if isinstance(key, AzureNamedKeyCredential):
        key = AzureNamedKeyCredential(key.named_key.name, key.named_key.key)
    return client.url, key


TABLES: Final = Service(
    kind="table",
    client=TableClient,
    account_of=_account_of,
    place="table",
    setting="table",
    items="entities",
    name_pattern="[A-Za-z][A-Za-z0-9]{2,62}",
    name_rule="give 3 to 63 letters and digits, beginning with a letter",
    role="Storage Table Data Contributor",
    races=frozenset(
        {
            "ConditionNotMet",
            "EntityAlreadyExists",
            "EntityNotFound",
            "ResourceNotFound",
            "UpdateConditionNotSatisfied",
        }
    ),
    missing="TableNotFound",
    remedy="create it with `eventproc store init --store tables:{name}`, or let a processor create "
    "it when it starts (create_table=True, --create-container)",
    pauses=frozenset({"TableBeingDeleted"}),
)


class AzureTable:
    """A ``Table`` through Azure's client."""

    def __init__(self, connection: Connection[TableClient], *, is_created: bool) -> None:
        """With *is_created* the table is created if it does not exist."""
        self._connection = connection
        self._is_created = is_created

    async def open(self) -> None:
        steps = (self._create, self._check) if self._is_created else (self._check,)
        await connect(self._connection, *steps)

    async def close(self) -> None:
        await self._connection.close()

    async def _check(self) -> None:
        """Read, to check the credential and that the table exists."""
        await self.list(_NO_ENTITY.partition, ["owner_id"])

    async def _create(self) -> None:
        """Create the table unless it exists."""
        create = partial(unless_exists, self._connection.client.create_table, "TableAlreadyExists")
        await self._connection.ask(Right.CREATE, create)

    async def list(
        self, partition: str, columns: Sequence[str], *, row_prefix: str = ""
    ) -> Listing:
        dates: list[datetime] = []
        where = f"PartitionKey eq '{partition}'"
        if row_prefix:
            where += f" and RowKey ge '{row_prefix}' and RowKey lt '{row_prefix}~'"
        pages: Any = self._connection.client.query_entities(
            where,
            select=[*_SYSTEM, *columns],
            raw_response_hook=lambda answer: dates.append(
                self._connection.time_of(answer.http_response)
            ),
        ).by_page()
        entities: list[Entity] = []
        while not entities or pages.continuation_token:
            page = await self._connection.ask(Right.LIST, lambda: anext(pages, None))
            if page is None:
                break
            entities += [_as_entity(found) async for found in page]
        return Listing(entities=tuple(entities), as_of=dates[0])

    async def read(self, key: Key) -> Entity | None:
        call = partial(self._connection.client.get_entity, key.partition, key.row)
        try:
            return _as_entity(await self._connection.ask(Right.READ, call))
        except ConditionFailedError:
            return None

    async def write(self, write: Write) -> Written | None:
        client, entity = self._connection.client, _encoded(write.key, write.values)
        call: Any
        if write.etag is None:
            call = partial(client.create_entity, entity)
        else:
            call = partial(client.update_entity, entity, UpdateMode.MERGE, **_if_is(write.etag))
        return _as_written(await self._connection.ask(Right.WRITE, call))

    async def write_together(self, writes: Sequence[Write]) -> Sequence[Written | None]:
        operations: list[Any] = []
        for write in writes:
            entity = _encoded(write.key, write.values)
            if write.etag is None:
                operations.append(("create", entity))
            else:
                options = {"mode": UpdateMode.MERGE, **_if_is(write.etag)}
                operations.append(("update", entity, options))
        call = partial(self._connection.client.submit_transaction, operations)
        return [_as_written(answer) for answer in await self._connection.ask(Right.WRITE, call)]

    async def put(self, key: Key, values: Values) -> None:
        entity = _encoded(key, values)
        call = partial(self._connection.client.upsert_entity, entity, UpdateMode.REPLACE)
        await self._connection.ask(Right.WRITE, call)

    async def delete(self, key: Key, *, etag: str | None) -> None:
        condition = {} if etag is None else _if_is(etag)
        delete = self._connection.client.delete_entity
        await self._connection.ask(
            Right.DELETE, partial(delete, key.partition, key.row, **condition)
        )


def _if_is(etag: str) -> dict[str, Any]:
    """Return the client's arguments for the condition that an entity still has this ETag."""
    # The service refuses an ETag that is not of this form, even if no entity can have it.
    return if_is(f'W/"{etag}"')


def _encoded(key: Key, values: Values) -> dict[str, Any]:
    return {
        "PartitionKey": key.partition,
        "RowKey": key.row,
        **{name: _as_property(value) for name, value in values.items()},
    }


def _as_property(value: Value) -> object:
    """Return a value for the client, which needs an explicit type for integers beyond 32 bits."""
    if isinstance(value, int) and not isinstance(value, bool) and value not in _INT32:
        return EntityProperty(value, EdmType.INT64)
    return value


def _as_entity(found: TableEntity) -> Entity:
    metadata = found.metadata
    return Entity(
        key=Key(partition=found["PartitionKey"], row=found["RowKey"]),
        etag=_plain(metadata["etag"]),
        last_modified=_utc(metadata["timestamp"]),
        values={
            name: value.value if isinstance(value, EntityProperty) else value
            for name, value in found.items()
            if name not in _SYSTEM and value is not None
        },
    )


def _utc(instant: Any) -> datetime:  # noqa: ANN401 - the client's own subclass
    """Return a plain ``datetime`` instead of the client's own subclass."""
    return datetime.combine(instant.date(), instant.time(), UTC)


def _as_written(answer: Mapping[str, Any]) -> Written | None:
    etag = _plain(answer["etag"])
    written_at = time_in(etag)
    return None if written_at is None else Written(etag=etag, last_modified=written_at)


def _plain(etag: object) -> str:
    """Return an ETag without the mark of a weak one and without quotation marks."""
    return str(etag).removeprefix("W/").strip('"')


def time_in(etag: str) -> datetime | None:
    """Return the entity's ``Timestamp`` from its ETag, ``datetime'...'``.

    The service writes it like that, but does not promise it; ``None`` for any other ETag.
    """
    found = _TIME_IN_ETAG.search(unquote(etag))
    if found is None:
        return None
    try:
        return datetime.fromisoformat(found[1]).astimezone(UTC)
    except ValueError:
        return None
