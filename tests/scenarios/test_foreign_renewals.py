"""A group with processors of an Azure SDK, which have expirations and intervals of their own."""

import asyncio
from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.models import OwnershipClaim
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds

EXPIRATION = timedelta(seconds=180)


async def renewing(setup: Setup, every_s: float) -> None:
    """Own partition 0 as a processor of an Azure SDK does: without a member record."""
    async with MemoryCheckpointStore(setup.account) as store:
        etag = None
        while True:
            claim = OwnershipClaim(partition_id="0", owner_id="azure", expected_etag=etag)
            (result,) = await store.claim_ownership(setup.group, [claim])
            assert result.ownership is not None, "nobody else takes it"
            etag = result.ownership.etag
            await seconds(every_s)


def result_of(expiration: timedelta, every_s: float | None, lasts_s: float = 400) -> float:
    """Run a processor beside one that renews so often; return how old a record of it became."""
    setup = Setup(partition_count=2)
    ages = []

    async def scenario():
        foreign = None if every_s is None else asyncio.create_task(renewing(setup, every_s))
        await seconds(1)
        async with setup.processor(ownership_expiration=expiration):
            await seconds(60)
            for _ in range(int(lasts_s)):
                await seconds(1)
                record = setup.account.records(setup.group).ownership_by_partition["1"]
                ages.append((setup.now() - record.last_modified).total_seconds())
        if foreign is not None:
            foreign.cancel()

    run_virtual(scenario())
    return max(ages)


@pytest.mark.parametrize("expiration_s", [60, 180, 600])
def test_beside_an_azure_sdk_a_record_is_renewed_before_a_third_of_its_shortest_expiration(
    expiration_s,
):
    """JavaScript and Go take an owner for dead after 60 s, whatever our own expiration is."""
    assert result_of(timedelta(seconds=expiration_s), every_s=10) <= 20


def test_without_an_azure_sdk_records_are_renewed_after_a_third_of_the_expiration():
    """More renewals would cost requests for nothing."""
    assert 60 <= result_of(EXPIRATION, every_s=None) < 70


@pytest.mark.parametrize(
    ("every_s", "expiration_s", "is_short"),
    [(36, 60, True), (36, 180, False), (10, 60, False), (55, 120, False), (60, 120, True)],
)
def test_an_expiration_of_at_most_twice_the_others_interval_is_reported_once(
    every_s, expiration_s, is_short, caplog
):
    """One renewal that fails would cost a live owner its partition."""
    result_of(timedelta(seconds=expiration_s), every_s)

    found = [r for r in caplog.records if getattr(r, "event", "") == "expiration_short"]
    assert [(r.levelname, r.interval_s) for r in found if r.levelname == "WARNING"] == (
        [("WARNING", pytest.approx(every_s, abs=1))] if is_short else []
    )
