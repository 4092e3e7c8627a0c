"""What a gateway or a proxy answers in place of the storage service says nothing of a record."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from azure.storage.blob import ContainerClient

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.tables import TableCheckpointStore
from eventproc.dead_letters.blob import BlobDeadLetterReader, BlobDeadLetterSink
from eventproc.errors import ConfigurationError, DeadLetterError, StoreUnavailableError
from eventproc.models import (
    ConsumerGroup,
    DeadLetter,
    Member,
    OwnershipClaim,
    ReceivedEvent,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore
from tests.contract.gateway import Gateway
from tests.unit.checkpointstores.updates import update_of

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
PAGE = "<html><body>nginx</body></html>"
TABLE_ERROR = '{"odata.error": {"code": "ResourceNotFound", "message": {"value": "no"}}}'
BLOB_ERROR = "<?xml version='1.0'?><Error><Code>ConditionNotMet</Code></Error>"


def page(status: int, text: str = PAGE, **headers: str):
    """Return an answer of a gateway."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text, content_type="text/html", headers=headers)

    return answer


async def cut_short(request: web.Request) -> web.StreamResponse:
    """Begin an answer of the service, and end the connection within."""
    answer = web.StreamResponse(headers={"x-ms-request-id": "1", "Content-Length": "1000"})
    await answer.prepare(request)
    await answer.write(b"<")
    assert request.transport is not None
    request.transport.abort()
    return answer


ANSWERS = {
    **{str(status): page(status) for status in (200, 403, 404, 409, 412)},
    "a redirection": page(301, Location="http://127.0.0.1:9/login"),
    "an error like the table service's": page(404, TABLE_ERROR),
    "an error like the blob service's": page(412, BLOB_ERROR),
    "a code alone": page(412, **{"x-ms-error-code": "ConditionNotMet"}),
    "an id alone": page(412, **{"x-ms-request-id": "1"}),
    "half an answer": cut_short,
}


@asynccontextmanager
async def blobs(request) -> AsyncIterator[tuple[Gateway, CheckpointStore]]:
    """Yield a gateway, and an open blob store behind it."""
    storage, container = map(request.getfixturevalue, ("storage", "container"))
    port = port_in(storage, "BlobEndpoint")
    async with Gateway().before(port) as gateway:
        through = storage.replace(f":{port}/", f":{gateway.port}/")
        async with BlobCheckpointStore.from_connection_string(through, container) as store:
            yield gateway, store


@asynccontextmanager
async def tables_(request) -> AsyncIterator[tuple[Gateway, CheckpointStore]]:
    """Yield a gateway, and an open table store behind it."""
    storage = request.getfixturevalue("tables").connection_string
    port = port_in(storage, "TableEndpoint")
    async with Gateway().before(port) as gateway:
        through = storage.replace(f":{port}/", f":{gateway.port}/")
        name = f"t{uuid.uuid4().hex}"
        async with TableCheckpointStore.from_connection_string(
            through, name, create_table=True
        ) as store:
            yield gateway, store


def port_in(storage: str, endpoint: str) -> int:
    """Return the port of one of the endpoints of a connection string."""
    urls = dict(part.split("=", 1) for part in storage.split(";") if part)
    return urlsplit(urls[endpoint]).port or 80


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("behind", [blobs, tables_])
async def test_a_foreign_answer_is_unknown_to_every_call_and_costs_nothing(request, behind, answer):
    """No lease is lost by it, no record counts as missing, and none as written."""
    async with behind(request) as (gateway, store):
        [first] = await store.claim_ownership(GROUP, [claim(None)])
        member = (await store.announce_member(GROUP, Member(owner_id="a", incarnation="1"))).member
        stored = (await store.update_checkpoint(GROUP, update(1, None))).checkpoint
        gateway.answer = ANSWERS[answer]
        writes = asyncio.gather(
            store.claim_ownership(GROUP, [claim(first.ownership.etag)]),
            store.announce_member(GROUP, member),
            store.update_checkpoint(GROUP, update(2, stored)),
            store.withdraw_member(GROUP, member),
        )
        reads = asyncio.gather(
            store.list_ownership(GROUP),
            store.list_members(GROUP),
            store.read_checkpoint(GROUP, "0"),
            store.read_record(GROUP, "pauses"),
            return_exceptions=True,
        )
        (claimed,), announced, updated, withdrawn = await writes
        read = await reads
        gateway.answer = None
        [again] = await store.claim_ownership(GROUP, [claim(first.ownership.etag)])
        found = await store.read_checkpoint(GROUP, "0")

    assert [claimed.outcome, announced.outcome, updated.outcome, withdrawn] == [
        WriteOutcome.UNKNOWN
    ] * 4
    assert {type(write.error) for write in (claimed, announced, updated)} == {StoreUnavailableError}
    assert list(map(type, read)) == [StoreUnavailableError] * 4
    assert again.outcome is WriteOutcome.WON
    assert found.sequence_number == 1


def claim(etag):
    """Return a claim of partition 0."""
    return OwnershipClaim(partition_id="0", owner_id="a", expected_etag=etag)


def update(number, replaces):
    """Return an update of partition 0, with a state."""
    return update_of(number, replaces, b"state of %d" % number)


async def test_a_foreign_answer_names_itself(request):
    """Whoever reads the log knows that the storage account is not to blame."""
    async with blobs(request) as (gateway, store):
        gateway.answer = page(404)
        with pytest.raises(StoreUnavailableError) as caught:
            await store.list_ownership(GROUP)

    assert "something else answered (status 404, without x-ms-request-id)" in str(caught.value)
    assert "Check the gateways and proxies" in str(caught.value)


@pytest.mark.parametrize("writes", [1, 3])
async def test_a_record_that_is_written_between_the_two_requests_of_a_read_is_read_anew(
    request, writes
):
    """If it counted as missing, its partition would begin anew."""
    async with blobs(request) as (gateway, store):
        stored = [(await store.update_checkpoint(GROUP, update(0, None))).checkpoint]

        async def write(asked: web.Request) -> None:
            if asked.method == "GET" and len(stored) <= writes:
                number = len(stored)
                stored.append(None)  # the writes' own requests pass through here, too
                result = await store.update_checkpoint(GROUP, update(number, stored[number - 1]))
                stored[number] = result.checkpoint

        gateway.answer = write
        found = await store.read_checkpoint(GROUP, "0")

    assert found is not None
    assert (found.sequence_number, found.state) == (writes, b"state of %d" % writes)


@pytest.mark.parametrize("behind", [blobs, tables_])
async def test_a_renewal_that_was_sent_twice_is_won(request, behind):
    """aiohttp repeats a PUT by itself if a connection breaks that was in use before. The first was
    done, so the second finds another version: its own."""
    async with behind(request) as (gateway, store):
        [first] = await store.claim_ownership(GROUP, [claim(None)])
        writes = []

        def is_first_write(asked: web.Request) -> bool:
            writes.extend([asked.method] * (asked.method not in {"GET", "HEAD"}))
            return len(writes) == 1

        gateway.is_lost = is_first_write
        [renewed] = await store.claim_ownership(GROUP, [claim(first.ownership.etag)])

    assert len(writes) == 2
    assert renewed.outcome is WriteOutcome.WON


LETTER = DeadLetter(
    event=ReceivedEvent(
        body=b"x", sequence_number=7, offset="7", enqueued_time=datetime(2026, 1, 1, tzinfo=UTC)
    ),
    group=GROUP,
    partition_id="0",
    owner_id="a",
    attempt_count=1,
    error_type="ValueError",
    error_message="no",
    traceback="",
    given_up_at=datetime(2026, 1, 1, tzinfo=UTC),
)


@pytest.mark.parametrize("answer", ["200", "404", "412", "a redirection", "half an answer"])
async def test_a_foreign_answer_neither_stores_nor_hides_nor_removes_a_dead_letter(
    storage, container, answer
):
    """An event that is not stored would be lost, because its partition goes on."""
    port = port_in(storage, "BlobEndpoint")
    async with Gateway().before(port) as gateway:
        through = storage.replace(f":{port}/", f":{gateway.port}/")
        async with AsyncExitStack() as stack:
            sink = BlobDeadLetterSink.from_connection_string(through, container)
            reader = BlobDeadLetterReader.from_connection_string(through, container)
            for each in (sink, reader):
                await each.open()
                stack.push_async_callback(each.close)
            await sink.store(LETTER)
            [letter] = [each async for each in reader.letters()]
            gateway.answer = ANSWERS[answer]
            with pytest.raises(DeadLetterError):
                await sink.store(LETTER)
            with pytest.raises(DeadLetterError):
                [each async for each in reader.letters()]
            with pytest.raises(DeadLetterError):
                await reader.remove(letter)
            other = BlobDeadLetterSink.from_connection_string(through, container)
            with pytest.raises(DeadLetterError):
                await other.open()


@pytest.mark.parametrize("creates", [False, True])
@pytest.mark.parametrize("what", ["a host with a dot", "another account"])
async def test_a_service_that_knows_no_such_account_is_a_wrong_setting(
    storage, tables, what, creates
):
    """Azurite takes the first part of a host name with a dot for the account's name."""
    for make, conn_str, endpoint in (
        (BlobCheckpointStore, storage, "BlobEndpoint"),
        (TableCheckpointStore, tables.connection_string, "TableEndpoint"),
    ):
        port = port_in(conn_str, endpoint)
        async with Gateway().before(port) as gateway:
            through = conn_str.replace(f":{port}/", f":{gateway.port}/")
            if what == "a host with a dot":
                gateway.host = "azurite.default.svc.cluster.local"
            else:
                through = through.replace("/devstoreaccount1", "/otheraccount")
            creating = "create_container" if make is BlobCheckpointStore else "create_table"
            store = make.from_connection_string(through, "records", **{creating: creates})
            with pytest.raises(ConfigurationError, match="there is no such storage account"):
                await store.open()


@pytest.mark.parametrize("host", ["127.0.0.1:10000", "[::1]:10000", "azurite:10000"])
def test_an_address_without_the_account_is_refused_at_construction(host):
    """In Azure the account is a part of the host's name, in Azurite the path."""
    key = "AccountName=shop;AccountKey=aHVzaA=="
    blob, table = f"{key};BlobEndpoint=http://{host}", f"{key};TableEndpoint=http://{host}/"
    for make, conn_str in (
        (BlobCheckpointStore, blob),
        (TableCheckpointStore, table),
        (BlobDeadLetterSink, blob),
    ):
        with pytest.raises(
            ConfigurationError, match=r"lacks the account's name: give http://.*/NA"
        ):
            make.from_connection_string(conn_str, "records")


async def test_a_container_that_is_created_by_two_processors_at_once_is_there(storage, container):
    """One of them creates it; neither fails."""
    name = f"{container}-both"
    stores = [
        BlobCheckpointStore.from_connection_string(storage, name, create_container=True)
        for _ in range(2)
    ]
    await asyncio.gather(*(store.open() for store in stores))
    await asyncio.gather(*(store.close() for store in stores))
    with ContainerClient.from_connection_string(storage, name) as client:
        client.delete_container()
