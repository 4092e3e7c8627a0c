"""Renewals in transactions: what is repeated after one failed condition or a lost answer."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpointstores._requests import WriteAnswer, Written
from checkpointstores.tables._renewals import renew
from checkpointstores.tables._requests import answer_in
from checkpointstores.tables._table import TRANSACTION_MAX, Entity, Key, Write
from eventproc._base.azure_storage.answers import ConditionFailedError
from eventproc.errors import StoreUnavailableError
from eventproc.models import WriteOutcome

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WON, LOST, UNKNOWN = WriteOutcome.WON, WriteOutcome.LOST, WriteOutcome.UNKNOWN


def entity(number: int, etag: str, name: str = "other") -> Entity:
    """Return an ownership entity; *name* is that of the write that wrote it."""
    return Entity(
        key=Key(partition="g", row=str(number)),
        etag=etag,
        last_modified=NOW,
        values={"partition_id": str(number), "write": name},
    )


def writes(count: int) -> dict[str, Write]:
    """Return a renewal of each of *count* partitions, on the ETag ``old``."""
    return {
        str(n): Write(key=Key(partition="g", row=str(n)), values={"write": f"w{n}"}, etag="old")
        for n in range(count)
    }


@dataclass
class Rows:
    """Entities with transactions: all or nothing, like the service."""

    stored: dict[str, Entity]
    failures: list[str] = field(default_factory=list)
    """What happens to the next transactions: ``lost answer``, ``no answer``."""

    sizes: list[int] = field(default_factory=list)
    listings: int = 0

    async def transact(self, batch):
        """Make all writes, or none."""
        self.sizes.append(len(batch))
        failure = self.failures.pop(0) if self.failures else ""
        if failure == "no answer":
            raise StoreUnavailableError("no answer")
        for write in batch:
            found = self.stored.get(write.key.row)
            if found is None or found.etag != write.etag:
                raise ConditionFailedError
        for write in batch:
            name = write.values["write"]
            self.stored[write.key.row] = entity(int(write.key.row), f"new {name}", name)
        if failure == "lost answer":
            raise StoreUnavailableError("lost answer")
        return [Written(etag=f"new {w.values['write']}", last_modified=NOW) for w in batch]

    async def read_all(self):
        """List all."""
        self.listings += 1
        return dict(self.stored)

    async def write_one(self, write):
        """Make one write alone."""
        try:
            await self.transact([write])
        except ConditionFailedError:
            return answer_in(write, self.stored.get(write.key.row))
        return WriteAnswer(WON, Written(etag="alone", last_modified=NOW))

    async def renew(self, batch):
        """Renew; return the outcomes by partition."""
        answers = await renew(batch, self.transact, self.read_all, self.write_one)
        return {key: answer.outcome for key, answer in answers.items()}


def rows(count: int, **settings) -> Rows:
    """Return entities with the ETag that ``writes`` expects."""
    return Rows({str(n): entity(n, "old") for n in range(count)}, **settings)


async def test_up_to_a_hundred_renewals_are_one_request():
    """And no listing is needed."""
    table = rows(TRANSACTION_MAX)

    assert set((await table.renew(writes(TRANSACTION_MAX))).values()) == {WON}
    assert (table.sizes, table.listings) == ([100], 0)


async def test_more_than_a_hundred_are_several_requests():
    """The service takes a hundred in one transaction."""
    table = rows(250)

    assert set((await table.renew(writes(250))).values()) == {WON}
    assert sorted(table.sizes) == [50, 100, 100]


@given(st.sets(st.integers(0, 29), max_size=30), st.sets(st.integers(0, 29), max_size=5))
def test_each_renewal_is_won_or_lost_on_its_own(stolen, gone):
    """Whatever others stole or deleted, the rest is renewed, in one transaction more."""
    table = rows(30)
    for number in stolen:
        table.stored[str(number)] = entity(number, "stolen")
    for number in gone:
        table.stored.pop(str(number))

    outcomes = asyncio.run(table.renew(writes(30)))

    lost = {str(number) for number in stolen | gone}
    assert outcomes == {str(n): LOST if str(n) in lost else WON for n in range(30)}
    assert len(table.sizes) <= 2
    assert table.listings == (1 if lost else 0)


async def test_a_lost_renewal_shows_what_is_stored_instead():
    """So the processor knows the new owner without another request."""
    table = rows(2)
    table.stored["1"] = entity(1, "stolen")

    answers = await renew(writes(2), table.transact, table.read_all, table.write_one)

    assert answers["1"].found == entity(1, "stolen")


async def test_a_lost_answer_is_settled_by_reading():
    """The listing has the names of these writes."""
    table = rows(3, failures=["lost answer"])

    assert set((await table.renew(writes(3))).values()) == {WON}
    assert (len(table.sizes), table.listings) == (1, 1)


async def test_without_an_answer_what_is_not_written_is_unknown():
    """It may yet be written; but what somebody else took is lost for certain."""
    table = rows(3, failures=["no answer"])
    table.stored["1"] = entity(1, "stolen")

    assert await table.renew(writes(3)) == {"0": UNKNOWN, "1": LOST, "2": UNKNOWN}


async def test_without_a_listing_what_failed_is_unknown():
    """One of the renewals was stolen, and nothing shows which."""
    table = rows(2)
    table.stored["1"] = entity(1, "stolen")

    async def read_all():
        raise StoreUnavailableError("no answer")

    answers = await renew(writes(2), table.transact, read_all, table.write_one)

    assert {answer.outcome for answer in answers.values()} == {UNKNOWN}


async def test_renewals_that_fail_again_and_again_are_written_alone():
    """A service that refuses the transactions for no reason that a listing shows."""
    table = rows(3)
    refused = 0

    async def transact(batch):
        nonlocal refused
        refused += 1
        raise ConditionFailedError

    answers = await renew(writes(3), transact, table.read_all, table.write_one)

    assert {answer.outcome for answer in answers.values()} == {WON}
    assert refused < 10


async def test_nothing_to_renew_makes_no_request():
    """Also no transaction without entities, which the service refuses."""
    table = rows(0)

    assert await table.renew({}) == {}
    assert table.sizes == []


@pytest.mark.parametrize(("name", "outcome"), [("w0", WON), ("other", LOST)])
def test_an_entity_shows_whether_a_write_succeeded(name, outcome):
    """By the name of the write, not by its content."""
    assert answer_in(writes(1)["0"], entity(0, "new", name)).outcome is outcome
