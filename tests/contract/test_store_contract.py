"""Every store against the contract of ``CheckpointStore``, clause by clause."""

import asyncio
from dataclasses import replace

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.errors import ConfigurationError
from eventproc.models import CheckpointUpdate, ConsumerGroup, OwnershipClaim
from eventproc.testing import ClauseReport, check_checkpoint_store, clause_names


@pytest.mark.parametrize(
    "clause",
    [
        pytest.param(name, marks=[pytest.mark.long] * (name == "listing_has_every_record"))
        for name in clause_names()
    ],
)
async def test_a_store_meets_each_clause_of_the_contract(store_kind, clause):
    """Each clause of the contract holds for each kind of store."""
    async with store_kind() as kind:
        [report] = await check_checkpoint_store(
            kind.make_store, lose_answers=kind.lose_answers, only=clause
        )

    assert report.name == clause


async def test_every_store_refuses_the_same_partition_ids(store_kind):
    """So that a group can be moved from one store to another; Azure's blobs allow no slash."""
    group = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub", name="group")
    claim = OwnershipClaim(partition_id="a/b", owner_id="a", expected_etag=None)
    update = CheckpointUpdate(
        partition_id="a/b", offset="100", sequence_number=1, replaces=None, writer="a"
    )
    async with store_kind() as kind, kind.make_store() as store:
        for call in (
            lambda: store.claim_ownership(group, [claim]),
            lambda: store.read_checkpoint(group, "a/b"),
            lambda: store.update_checkpoint(group, update),
        ):
            with pytest.raises(ConfigurationError, match="'a/b' cannot be part of a record's key"):
                await call()


async def test_the_contract_reports_every_clause_also_those_left_out():
    """Without ``lose_answers`` the clauses that need it are reported as not run."""
    seen: list[ClauseReport] = []
    store = MemoryCheckpointStore()
    reports = await check_checkpoint_store(
        lambda: MemoryCheckpointStore(store.account), records=10, rounds=2, on_clause=seen.append
    )
    left_out = {report.name for report in reports if report.took is None}

    assert [report.name for report in reports] == list(clause_names())
    assert seen == list(reports)
    assert "own_claim_is_recognised" in left_out
    assert len(left_out) < len(reports) / 2


async def test_stores_that_share_no_data_fail_the_contract():
    """The contract fails if ``make_store`` returns stores over different data."""
    with pytest.raises(AssertionError, match="first_claim_creates_the_record: another process"):
        await check_checkpoint_store(MemoryCheckpointStore, records=10, rounds=2)


def test_an_unknown_clause_is_an_error_that_names_it():
    """A typo in ``only`` does not pass as a contract that was checked."""
    with pytest.raises(ValueError, match="no clause named 'nonsense'"):
        asyncio.run(check_checkpoint_store(MemoryCheckpointStore, only="nonsense"))


class WithoutTime(MemoryCheckpointStore):
    """Its listings do not tell the store's time."""

    async def list_members(self, group):
        """Return a listing without ``as_of``."""
        return replace(await super().list_members(group), as_of=None)  # type: ignore[arg-type]


async def test_a_store_that_does_not_tell_its_time_fails_the_contract():
    """No processor could tell whether one of its records has expired."""
    store = MemoryCheckpointStore()
    with pytest.raises(AssertionError, match="as_of is missing"):
        await check_checkpoint_store(
            lambda: WithoutTime(store.account), only="store_returns_its_time"
        )
