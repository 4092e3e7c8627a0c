"""How long the partitions of a member that died have no live owner."""

from datetime import datetime
from random import Random

import pytest

from eventproc import EventProcessorConfig
from tests.scenarios.group_setup import Setup, seconds

EXPIRATION_S = EventProcessorConfig().ownership_expiration.total_seconds()
POLL_S = 1.1 * EventProcessorConfig().load_balancing_interval.total_seconds()


def renewed_at(setup: Setup, owner_id: str) -> datetime:
    """Return when the member last renewed the lease that expires first."""
    records = setup.account.records(setup.group)
    owned = records.ownership_by_partition.values()
    return min(o.last_modified for o in owned if o.owner_id == owner_id)


@pytest.mark.parametrize("number", range(5))
async def test_the_partitions_of_a_dead_member_have_new_owners_after_one_poll(number):
    """Not before the expiration, because it might be alive."""
    setup = Setup(6)
    processors = [setup.processor(owner_id=o, chance=f"{o}{number}") for o in "abc"]
    for processor in processors:
        await processor.start()
    await seconds(60 + Random(number).uniform(0, 30))
    setup.store_by_owner["a"].is_out = True
    renewed = renewed_at(setup, "a")
    while "a" in setup.owners().values():
        await seconds(0.1)
    took_s = (setup.now() - renewed).total_seconds()
    setup.store_by_owner["a"].is_out = False
    for processor in processors:
        await processor.stop()

    assert EXPIRATION_S <= took_s <= EXPIRATION_S + POLL_S + 0.5
