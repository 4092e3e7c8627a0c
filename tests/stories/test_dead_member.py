"""How long the partitions of a member that died have no live owner."""

from datetime import datetime
from random import Random

import pytest

from eventproc import EventProcessorConfig, LeaseMode
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene, seconds

EXPIRATION_S = EventProcessorConfig().ownership_expiration.total_seconds()
POLL_S = 1.1 * EventProcessorConfig().load_balancing_interval.total_seconds()


def renewed_at(scene: Scene, owner_id: str, mode: LeaseMode) -> datetime:
    """Return when the member last renewed what keeps its leases."""
    records = scene.account.records(scene.group)
    if mode is LeaseMode.SESSION:
        at = records.member_by_owner[owner_id].last_modified
        assert at is not None, "it was written"
        return at
    owned = records.ownership_by_partition.values()
    return min(o.last_modified for o in owned if o.owner_id == owner_id)


@pytest.mark.parametrize(("mode", "polls"), [(LeaseMode.PARTITION, 1), (LeaseMode.SESSION, 2)])
@pytest.mark.parametrize("number", range(5))
def test_the_partitions_of_a_dead_member_have_new_owners_after_the_promised_polls(
    mode, polls, number
):
    """Not before the expiration, because it might be alive."""

    async def story():
        scene = Scene(6)
        processors = [
            scene.processor(owner_id=o, chance=f"{o}{number}", lease_mode=mode) for o in "abc"
        ]
        for processor in processors:
            await processor.start()
        await seconds(60 + Random(number).uniform(0, 30))
        scene.store_by_owner["a"].is_out = True
        renewed = renewed_at(scene, "a", mode)
        while "a" in scene.owners().values():
            await seconds(0.1)
        took_s = (scene.now() - renewed).total_seconds()
        scene.store_by_owner["a"].is_out = False
        for processor in processors:
            await processor.stop()
        return took_s

    assert EXPIRATION_S <= run_virtual(story()) <= EXPIRATION_S + polls * POLL_S + 0.5
