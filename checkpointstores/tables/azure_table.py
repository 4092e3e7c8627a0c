"""A table through Azure's client.

Each call is one request without retries, and every exception of the client becomes one of
``eventproc.errors`` or ``ConditionFailedError``.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, Self, TypeVar, cast
from urllib.parse import unquote, urlsplit

from checkpointstores.reachability import no_answer
from checkpointstores.requests import ConditionFailedError
from checkpointstores.tables.table import (
    Entity,
    Key,
    Listing,
    Right,
    Value,
    Values,
    Write,
    Written,
    error_for,
    no_account,
)
from eventproc.errors import ConfigurationError, StoreRejectedError, StoreUnavailableError
from eventproc.extras import needing
from eventproc.identity import NoTokenError
from eventproc.identity.storage_account import require_endpoint

with needing("tables"):
    import aiohttp
    from azure.core import MatchConditions
    from azure.core.credentials import AzureNamedKeyCredential
    from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
    from azure.data.tables import EdmType, EntityProperty, TableEntity, UpdateMode
    from azure.data.tables.aio import TableClient

    from checkpointstores.transport import new_transport, ssl_context_for

T = TypeVar("T")

_TIME_IN_ETAG: Final = re.compile(r"datetime'([^']+)'")
_INT32: Final = range(-(2**31), 2**31)
_SYSTEM: Final = ("PartitionKey", "RowKey", "Timestamp")
_NO_ENTITY: Final = Key(partition="!", row="!")
"""The key of an entity that does not exist. Listing its partition checks the right to read."""


def account_of(connection_string: str) -> tuple[str, Any]:
    """Return the URL of an account's table service, and the credential, from a connection string.

    Raises:
        ConfigurationError: the text is not a connection string of a storage account, or names only
            other services of it.
    """
    connection_string = require_endpoint(connection_string, "table")
    try:
        client = TableClient.from_connection_string(connection_string, "any")
    except (ValueError, TypeError):
        # ``from None``: the client's message may quote the connection string, with the key.
        raise ConfigurationError(
            "this is not the connection string of a storage account: it has AccountName=... "
            "and AccountKey=... (one of Event Hubs, with Endpoint=sb://..., is for the source)"
        ) from None
    key = client.credential
    if isinstance(key, AzureNamedKeyCredential):
        key = AzureNamedKeyCredential(key.named_key.name, key.named_key.key)
    return client.url, key


class AzureTable:
    """A ``Table`` through Azure's client."""

    def __init__(
        self, client: TableClient, place: str, *, request_timeout: timedelta, is_identity: bool
    ) -> None:
        self._client = client
        self._place = place
        self._request_timeout_s = request_timeout.total_seconds()
        self._is_identity = is_identity

    @classmethod
    async def connect(
        cls,
        account_url: str,
        name: str,
        credential: object,
        *,
        place: str,
        request_timeout: timedelta,
        ca_bundle: str | None,
        settings: Mapping[str, Any],
    ) -> Self:
        """Make the client; the first request connects it."""
        ssl_context = await asyncio.to_thread(ssl_context_for, ca_bundle)
        # The client must not retry: it would hide that an answer was lost. ``retried`` does it.
        client = TableClient(
            account_url,
            name,
            credential=cast("Any", credential),
            transport=new_transport(request_timeout, ssl_context),
            retry_total=0,
            **settings,
        )
        has_token = hasattr(credential, "get_token")
        return cls(client, place, request_timeout=request_timeout, is_identity=has_token)

    async def list(
        self, partition: str, columns: Sequence[str], *, row_prefix: str = ""
    ) -> Listing:
        dates: list[datetime] = []
        where = f"PartitionKey eq '{partition}'"
        if row_prefix:
            where += f" and RowKey ge '{row_prefix}' and RowKey lt '{row_prefix}~'"
        pages: Any = self._client.query_entities(
            where,
            select=[*_SYSTEM, *columns],
            raw_response_hook=lambda response: dates.append(self._time_of(response.http_response)),
        ).by_page()
        entities: list[Entity] = []
        while not entities or pages.continuation_token:
            try:
                page = await self._ask(Right.READ, lambda: anext(pages, None))
            except ConditionFailedError:  # a query finds nothing or something, never no entity
                raise no_account(self._place) from None
            if page is None:
                break
            entities += [_as_entity(found) async for found in page]
        return Listing(entities=tuple(entities), as_of=dates[0])

    def _time_of(self, response: Any) -> datetime:  # noqa: ANN401 - the client's type is private
        """Return the service's time in an answer: without it no record can be called expired."""
        date = response.headers.get("Date")
        if date is None:
            raise StoreUnavailableError(
                f"{self._place} answered a listing without the header Date: check the proxies "
                "between this processor and the storage account"
            )
        return parsedate_to_datetime(date)

    async def read(self, key: Key) -> Entity | None:
        try:
            found = await self._ask(
                Right.READ, lambda: self._client.get_entity(key.partition, key.row)
            )
        except ConditionFailedError:
            return None
        return _as_entity(found)

    async def write(self, write: Write) -> Written:
        entity = _encoded(write.key, write.values)
        if write.etag is None:
            answer = await self._ask(Right.WRITE, lambda: self._client.create_entity(entity))
        else:
            condition = _if_is(write.etag)
            answer = await self._ask(
                Right.WRITE,
                lambda: self._client.update_entity(entity, UpdateMode.MERGE, **condition),
            )
        return _as_written(answer)

    async def write_together(self, writes: Sequence[Write]) -> Sequence[Written]:
        operations: list[Any] = []
        for write in writes:
            entity = _encoded(write.key, write.values)
            if write.etag is None:
                operations.append(("create", entity))
            else:
                options = {"mode": UpdateMode.MERGE, **_if_is(write.etag)}
                operations.append(("update", entity, options))
        answers = await self._ask(Right.WRITE, lambda: self._client.submit_transaction(operations))
        return [_as_written(answer) for answer in answers]

    async def put(self, key: Key, values: Values) -> None:
        entity = _encoded(key, values)
        await self._ask(Right.WRITE, lambda: self._client.upsert_entity(entity, UpdateMode.REPLACE))

    async def delete(self, key: Key, *, etag: str | None) -> None:
        condition = {} if etag is None else _if_is(etag)
        await self._ask(
            Right.DELETE,
            lambda: self._client.delete_entity(key.partition, key.row, **condition),
        )

    async def check(self) -> None:
        """Read, to check the credential and that the table exists."""
        await self.list(_NO_ENTITY.partition, ["owner_id"])

    async def create(self) -> None:
        """Create the table unless it exists."""

        async def create() -> None:
            try:
                await self._client.create_table()
            except HttpResponseError as error:
                if _code(error) != "TableAlreadyExists":
                    raise

        await self._ask(Right.CREATE_TABLE, create)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _ask(self, right: Right, call: Callable[[], Awaitable[T]]) -> T:
        """Make one request, and translate its errors."""
        try:
            async with asyncio.timeout(self._request_timeout_s):
                return await call()
        except HttpResponseError as error:
            if error.status_code is None and not isinstance(error, ClientAuthenticationError):
                raise no_answer(error, f"table {self._place}") from error  # cut short
            raise error_for(
                error.status_code or 0,
                _code(error),
                place=self._place,
                right=right,
                is_identity=self._is_identity,
            ) from error
        except NoTokenError as error:
            raise StoreRejectedError(f"table {self._place} cannot be used: {error}") from error
        except (AzureError, aiohttp.ClientError, OSError) as error:
            raise no_answer(error, f"table {self._place}") from error


def place_of(account_url: str, name: str) -> str:
    """Return the table's address without secrets, for messages and logs."""
    url = urlsplit(account_url)
    return f"{url.netloc.rpartition('@')[2]}{url.path.rstrip('/')}/{name}"


def _if_is(etag: str) -> dict[str, Any]:
    """Return the client's arguments for the condition that an entity still has this ETag."""
    # The service refuses an ETag that is not of this form, even if no entity can have it.
    return {"etag": f'W/"{etag}"', "match_condition": MatchConditions.IfNotModified}


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


def _as_written(answer: Mapping[str, Any]) -> Written:
    etag = _plain(answer["etag"])
    return Written(etag=etag, last_modified=time_in(etag))


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


def _code(error: HttpResponseError) -> str:
    code = getattr(error, "error_code", None)
    response: Any = error.response
    if response is None:
        return type(error).__name__
    if code is None:
        code = response.headers.get("x-ms-error-code") or ""
    return str(getattr(code, "value", code))
