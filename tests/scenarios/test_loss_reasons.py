"""The log of a lost lease tells another owner's claim from a change by an operator."""

import logging

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.errors import StoreUnavailableError
from eventproc.models import OwnershipClaim
from tests.scenarios.group_setup import Setup, seconds
from tests.unit.eventproc.test_admin import move

REASONS = ("ownership_lost", "ownership_rewritten", "renewal_failed")


async def change(setup: Setup, owner_id: str | None) -> None:
    """Write this owner into the record of partition 0."""
    records = setup.account.records(setup.group).ownership_by_partition
    claim = OwnershipClaim(partition_id="0", owner_id=owner_id, expected_etag=records["0"].etag)
    async with MemoryCheckpointStore(setup.account) as store:
        await store.claim_ownership(setup.group, [claim])


async def reset(setup: Setup) -> None:
    """Move the checkpoint as ``eventproc checkpoints reset`` does."""
    await move(setup, -1)


async def steal(setup: Setup) -> None:
    """Let another processor steal the partition."""
    await change(setup, "thief")


async def release(setup: Setup) -> None:
    """Release the partition."""
    await change(setup, None)


async def no_answer(_group):
    """Raise as a listing without an answer does."""
    raise StoreUnavailableError("no answer")


def losses_logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, object]]:
    """The logged events, and the owner that each partition went to."""
    return [
        (getattr(record, "event", ""), getattr(record, "to_owner_id", ""))
        for record in caplog.records
        if getattr(record, "event", "") in REASONS
    ]


@pytest.mark.parametrize(
    ("cause", "event"),
    [
        (reset, ("ownership_rewritten", "")),
        (steal, ("ownership_lost", "thief")),
        (release, ("ownership_lost", None)),
    ],
)
async def test_the_log_has_the_reason_for_a_lease_lost_at_a_poll(cause, event, caplog):
    """A reset by an operator is not logged as the claim of another owner."""
    caplog.set_level(logging.INFO)
    setup = Setup()
    processor = setup.processor()
    await processor.start()
    await seconds(15)
    await cause(setup)
    await seconds(40)
    await processor.stop()

    assert losses_logged(caplog) == [event]


async def test_the_log_of_a_reset_says_that_it_was_one(caplog):
    """An operator who reads it later need not look the event up."""
    setup = Setup()
    processor = setup.processor()
    await processor.start()
    await seconds(15)
    await reset(setup)
    await seconds(40)
    await processor.stop()

    (record,) = [r for r in caplog.records if getattr(r, "event", "") == "ownership_rewritten"]

    assert "`eventproc checkpoints` does when it moves a checkpoint" in record.remedy
    assert record.remedy.endswith("the partition begins again at the stored checkpoint")


@pytest.mark.parametrize("is_silent", [False, True])
@pytest.mark.parametrize(
    ("cause", "event"),
    [(reset, ("ownership_rewritten", "")), (steal, ("ownership_lost", "thief"))],
)
async def test_the_record_is_read_for_the_reason_of_a_refused_renewal(
    cause, event, is_silent, caplog
):
    """The pump is stopped first. If the store does not answer, the log names no owner."""
    caplog.set_level(logging.INFO)
    setup = Setup()
    processor = setup.processor()
    await processor.start()
    await seconds(15)
    run = processor._run
    assert run is not None
    await cause(setup)
    if is_silent:
        setup.store_by_owner["a"].list_ownership = no_answer  # type: ignore[method-assign]
    await run.leases.renew_all()
    await seconds(0.1)
    lost_count = processor.statistics().lost_count
    await processor.stop()

    assert lost_count == 1
    assert losses_logged(caplog)[:1] == [("ownership_lost", None) if is_silent else event]
