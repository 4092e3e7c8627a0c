"""``FaultyCheckpointStore`` injects the faults it was asked for, the same ones for the same
seed."""

from datetime import timedelta
from random import Random

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.errors import ConfigurationError, StoreUnavailableError
from eventproc.models import CheckpointUpdate, ConsumerGroup, Member, OwnershipClaim, WriteOutcome
from eventproc.testing import FaultyCheckpointStore, StoreFaults

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
MEMBER = Member(owner_id="a", incarnation="1")
UPDATE = CheckpointUpdate(
    partition_id="0", offset="1", sequence_number=1, replaces=None, writer="w"
)


def claim(partition_id):
    """Return a first claim."""
    return OwnershipClaim(partition_id=partition_id, owner_id="a", expected_etag=None)


async def all_writes(store):
    """Make one write of each kind; return the set of their outcomes."""
    [claimed] = await store.claim_ownership(GROUP, [claim("0")])
    updated = await store.update_checkpoint(GROUP, UPDATE)
    announced = await store.announce_member(GROUP, MEMBER)
    withdrawn = await store.withdraw_member(GROUP, Member(owner_id="b", incarnation="1"))
    return {claimed.outcome, updated.outcome, announced.outcome, withdrawn}


async def records_written(store):
    """Return how many records of each kind the inner store has."""
    inner = store.store
    return (
        len((await inner.list_ownership(GROUP)).ownerships),
        len(await inner.list_checkpoints(GROUP)),
        len((await inner.list_members(GROUP)).members),
    )


@pytest.mark.parametrize(
    ("faults", "written"),
    [
        (StoreFaults(throttle_rate=1), (0, 0, 0)),
        (StoreFaults(request_lost_rate=1), (0, 0, 0)),
        (StoreFaults(answer_lost_rate=1), (1, 1, 1)),
    ],
)
async def test_a_lost_request_and_a_lost_answer_are_both_unknown(faults, written):
    """The caller gets ``UNKNOWN`` for both; the write was carried out only if the answer was
    lost."""
    async with FaultyCheckpointStore(MemoryCheckpointStore(), Random(1), faults) as store:
        outcomes = await all_writes(store)
        for read in (store.list_ownership, store.list_members, store.list_checkpoints):
            with pytest.raises(StoreUnavailableError):
                await read(GROUP)
        with pytest.raises(StoreUnavailableError):
            await store.read_checkpoint(GROUP, "0")
        inner = await records_written(store)

    assert outcomes == {WriteOutcome.UNKNOWN}
    assert inner == written


async def test_outage_blocks_all_calls_until_its_block_ends():
    """During the block no write reaches the inner store; after it, all do."""
    async with FaultyCheckpointStore(MemoryCheckpointStore(), Random(1)) as store:
        with store.outage():
            during = await all_writes(store)
            inner = await records_written(store)
        after = await all_writes(store)

    assert (during, inner) == ({WriteOutcome.UNKNOWN}, (0, 0, 0))
    assert after == {WriteOutcome.WON}


async def history(seed):
    """Return the outcome of forty claims with random faults, and whether each was written."""
    faults = StoreFaults(
        delay_max=timedelta(milliseconds=2),
        throttle_rate=0.2,
        request_lost_rate=0.2,
        answer_lost_rate=0.2,
    )
    async with FaultyCheckpointStore(MemoryCheckpointStore(), Random(seed), faults) as store:
        results = await store.claim_ownership(GROUP, [claim(str(n)) for n in range(40)])
        snapshot = await store.store.list_ownership(GROUP)
    written = {record.partition_id for record in snapshot.ownerships}
    return [(result.outcome, result.claim.partition_id in written) for result in results]


async def test_the_same_seed_injects_the_same_faults():
    """Two runs with one seed have equal histories; another seed has another one."""
    first, again, other = await history(1), await history(1), await history(2)

    assert first == again
    assert first != other
    assert set(first) == {
        (WriteOutcome.WON, True),
        (WriteOutcome.UNKNOWN, True),
        (WriteOutcome.UNKNOWN, False),
    }


@pytest.mark.parametrize(
    "rates",
    [
        {"throttle_rate": -0.1},
        {"answer_lost_rate": 1.1},
        {"throttle_rate": 0.6, "request_lost_rate": 0.6},
    ],
)
def test_rates_must_be_probabilities_that_sum_to_at_most_one(rates):
    """A rate outside of 0 to 1, or rates with a sum above 1, raise ``ConfigurationError``."""
    with pytest.raises(ConfigurationError):
        StoreFaults(**rates)
