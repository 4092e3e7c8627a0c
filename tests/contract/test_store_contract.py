"""Every store against the meaning of the port, clause by clause."""

import asyncio

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.testing import ClauseReport, check_checkpoint_store, clause_names


@pytest.mark.parametrize("clause", clause_names())
async def test_a_store_keeps_the_promise(stand, clause):
    """Each clause of the contract holds for each store."""
    async with stand() as made:
        [report] = await check_checkpoint_store(
            made.make_store, lose_answers=made.lose_answers, only=clause
        )

    assert report.name == clause


async def test_the_contract_tells_which_clauses_ran():
    """Without a way to lose answers the clauses that need one are reported as left out."""
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


async def test_stores_that_share_nothing_fail_the_contract():
    """The suite notices that two stores are not two processes over the same data."""
    with pytest.raises(AssertionError, match="first_claim_creates_the_record: another process"):
        await check_checkpoint_store(MemoryCheckpointStore, records=10, rounds=2)


def test_an_unknown_clause_is_named():
    """A typo in ``only`` must not look like a contract that was kept."""
    with pytest.raises(ValueError, match="no clause named 'nonsense'"):
        asyncio.run(check_checkpoint_store(MemoryCheckpointStore, only="nonsense"))
