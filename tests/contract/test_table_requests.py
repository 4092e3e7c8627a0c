"""How many requests the table store makes, and what remains in the table, on a real one."""

import uuid
from contextlib import asynccontextmanager

import pytest
from azure.data.tables.aio import TableClient

from checkpointstores.tables import TableCheckpointStore
from eventproc._base.azure_storage.connection import Connection
from eventproc.errors import ConfigurationError
from eventproc.models import (
    STATE_BYTES_MAX,
    ConsumerGroup,
    OwnershipClaim,
    WriteOutcome,
)
from tests.unit.checkpointstores.updates import update_of

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
WON, LOST = WriteOutcome.WON, WriteOutcome.LOST


@pytest.fixture
def requests(monkeypatch):
    """Return a list that gets the right of each request that is made."""
    made = []
    ask = Connection.ask

    async def counted(self, right, call):
        made.append(right.name)
        return await ask(self, right, call)

    monkeypatch.setattr(Connection, "ask", counted)
    return made


@asynccontextmanager
async def two_stores(tables):
    """Open two stores over one new table, and the table itself."""
    name, conn_str = f"t{uuid.uuid4().hex}", tables.connection_string
    make = TableCheckpointStore.from_connection_string
    async with (
        make(conn_str, name, create_table=True) as store,
        make(conn_str, name) as other,
        TableClient.from_connection_string(conn_str, name) as table,
    ):
        yield store, other, table


def claims_of(owner_id, results):
    """Return claims of the same partitions, on the ETags of the results."""
    return [
        OwnershipClaim(
            partition_id=result.claim.partition_id,
            owner_id=owner_id,
            expected_etag=result.ownership and result.ownership.etag,
        )
        for result in results
    ]


def first_claims(count):
    """Return claims of partitions that have no record."""
    return [
        OwnershipClaim(partition_id=str(n), owner_id="a", expected_etag=None) for n in range(count)
    ]


async def test_renewals_are_one_request_and_a_steal_never_rides_along(tables, requests):
    """A lost steal must not fail the renewals."""
    async with two_stores(tables) as (store, other, _):
        mine = await store.claim_ownership(GROUP, first_claims(20))
        requests.clear()
        renewed = await store.claim_ownership(GROUP, claims_of("a", mine))
        assert requests == ["WRITE"]

        outdated = claims_of("b", mine)[0]
        [theirs] = await other.claim_ownership(
            GROUP, [OwnershipClaim(partition_id="x", owner_id="b", expected_etag=None)]
        )
        await store.list_ownership(GROUP)  # It knows the other owner.
        steal = OwnershipClaim(partition_id="x", owner_id="a", expected_etag=outdated.expected_etag)
        requests.clear()
        results = await store.claim_ownership(GROUP, [*claims_of("a", renewed), steal])

    assert theirs.outcome is WON
    assert [result.outcome for result in results] == [WON] * 20 + [LOST]
    assert requests == ["WRITE", "WRITE", "READ"]  # transaction and steal, and its reading


async def test_one_stolen_partition_costs_one_listing_and_one_more_transaction(tables, requests):
    """The others are renewed in the same call."""
    async with two_stores(tables) as (store, other, _):
        mine = await store.claim_ownership(GROUP, first_claims(20))
        await other.claim_ownership(GROUP, claims_of("b", mine)[3:5])
        requests.clear()
        results = await store.claim_ownership(GROUP, claims_of("a", mine))

    assert [n for n, result in enumerate(results) if result.outcome is LOST] == [3, 4]
    assert results[3].ownership.owner_id == "b"
    assert requests == ["WRITE", "LIST", "WRITE"]


async def test_a_hundred_and_one_renewals_are_two_requests(tables, requests):
    """A transaction has at most a hundred entities."""
    async with two_stores(tables) as (store, _, _):
        mine = await store.claim_ownership(GROUP, first_claims(101))
        requests.clear()
        renewed = await store.claim_ownership(GROUP, claims_of("a", mine))

    assert {result.outcome for result in renewed} == {WON}
    assert requests == ["WRITE", "WRITE"]


async def test_a_restarted_processor_renews_together_what_it_listed(tables, requests):
    """What is a renewal is seen in the listing, too."""
    async with two_stores(tables) as (store, other, _):
        await store.claim_ownership(GROUP, first_claims(5))
        listed = await other.list_ownership(GROUP)
        requests.clear()
        await other.claim_ownership(
            GROUP,
            [
                OwnershipClaim(partition_id=r.partition_id, owner_id="a", expected_etag=r.etag)
                for r in listed.ownerships
            ],
        )

    assert requests == ["WRITE"]


async def parts_in(table):
    """Return the row keys of the parts of large contents."""
    return [e["RowKey"] async for e in table.list_entities() if e["PartitionKey"].endswith("part")]


async def test_a_large_state_leaves_no_parts_behind_when_it_is_replaced(tables):
    """Neither what it replaces, nor what a lost write had stored, nor what a small one replaces."""
    large = bytes(range(256)) * (STATE_BYTES_MAX // 256)
    async with two_stores(tables) as (store, other, table):
        first = (await store.update_checkpoint(GROUP, update_of(1, None, large))).checkpoint
        count = len(await parts_in(table))
        assert count > 1
        second = (await store.update_checkpoint(GROUP, update_of(2, first, large[::-1]))).checkpoint
        assert len(await parts_in(table)) == count
        lost = await other.update_checkpoint(GROUP, update_of(3, first, large))
        assert lost.outcome is LOST
        assert len(await parts_in(table)) == count
        third = (await store.update_checkpoint(GROUP, update_of(3, second))).checkpoint
        assert (await other.read_checkpoint(GROUP, "0")).state == large[::-1]
        await store.update_checkpoint(GROUP, update_of(4, third, b"small"))
        assert await parts_in(table) == []
        assert (await other.read_checkpoint(GROUP, "0")).state == b"small"


async def test_a_table_that_does_not_exist_is_an_error_with_the_remedy(tables):
    """It is not created by a mistyped name."""
    store = TableCheckpointStore.from_connection_string(tables.connection_string, "missing")
    with pytest.raises(ConfigurationError, match="eventproc store init"):
        await store.open()
