"""A lost lease: the log tells another owner's claim from an operator's change."""

import logging

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import LeaseMode
from eventproc.errors import StoreUnavailableError
from eventproc.models import OwnershipClaim
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene, seconds
from tests.unit.eventproc.test_admin import move

REASONS = ("ownership_lost", "ownership_touched", "renewal_failed")


async def change(scene: Scene, owner_id: str | None) -> None:
    """Write an owner into the record of partition 0, as it stands."""
    records = scene.account.records(scene.group).ownership_by_partition
    claim = OwnershipClaim(partition_id="0", owner_id=owner_id, expected_etag=records["0"].etag)
    async with MemoryCheckpointStore(scene.account) as store:
        await store.claim_ownership(scene.group, [claim])


async def reset(scene: Scene) -> None:
    """What ``eventproc checkpoints reset`` does."""
    await move(scene, -1)


async def steal(scene: Scene) -> None:
    """Take it for another processor."""
    await change(scene, "thief")


async def release(scene: Scene) -> None:
    """Leave it to nobody."""
    await change(scene, None)


async def unanswered(_group):
    """No listing comes."""
    raise StoreUnavailableError("no answer")


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, object]]:
    """The events, and to whom each partition went."""
    return [
        (getattr(record, "event", ""), getattr(record, "to_owner_id", ""))
        for record in caplog.records
        if getattr(record, "event", "") in REASONS
    ]


@pytest.mark.parametrize("mode", LeaseMode)
@pytest.mark.parametrize(
    ("happen", "event"),
    [
        (reset, ("ownership_touched", "")),
        (steal, ("ownership_lost", "thief")),
        (release, ("ownership_lost", None)),
    ],
)
def test_a_poll_shows_why_a_lease_was_lost(happen, event, mode, caplog):
    """An operator's reset is not the work of another owner."""
    caplog.set_level(logging.INFO)

    async def story():
        scene = Scene()
        processor = scene.processor(lease_mode=mode)
        await processor.start()
        await seconds(15)
        await happen(scene)
        await seconds(40)
        await processor.stop()

    run_virtual(story())

    assert told(caplog) == [event]


@pytest.mark.parametrize("is_silent", [False, True])
@pytest.mark.parametrize(
    ("happen", "event"),
    [(reset, ("ownership_touched", "")), (steal, ("ownership_lost", "thief"))],
)
def test_after_a_refused_renewal_the_record_is_read_for_the_reason(
    happen, event, is_silent, caplog
):
    """The pump is stopped first; if the store does not answer, the log names no owner."""
    caplog.set_level(logging.INFO)

    async def story():
        scene = Scene()
        processor = scene.processor()
        await processor.start()
        await seconds(15)
        run = processor._run
        assert run is not None
        await happen(scene)
        if is_silent:
            scene.store_by_owner["a"].list_ownership = unanswered  # type: ignore[method-assign]
        await run.leases.renew_all()
        await seconds(0.1)
        lost_count = processor.statistics().lost_count
        await processor.stop()
        return lost_count

    lost_count = run_virtual(story())

    assert lost_count == 1
    assert told(caplog)[:1] == [("ownership_lost", None) if is_silent else event]
