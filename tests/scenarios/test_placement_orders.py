"""Which processors write the records of which partitions: those in the placement's order."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import LoadBalancingStrategy
from eventproc._core.placement.placement import GroupState, Order, Placement
from eventproc.ports import ForwardingStore
from tests.scenarios.group_setup import Setup, seconds

NAMES = ["host-a", "host-b", "host-c", "host-d", "host-e"]


@dataclass(frozen=True)
class TwoOfFive(Placement):
    """Each partition may be owned by two members only."""

    is_sticky: ClassVar[bool] = False

    def order(self, state: GroupState) -> Order:
        """Return those of the two that are there."""

        def order(resource: str) -> Iterator[str]:
            return (name for name in candidates(resource) if name in state.members)

        return order


def candidates(partition_id: str) -> tuple[str, str]:
    """Return the two members that may have a partition."""
    number = int(partition_id)
    return NAMES[number % 5], NAMES[(number + 1) % 5]


class NotingStore(ForwardingStore):
    """Notes which processor writes, or tries to write, the records of which partition."""

    def __init__(self, setup: Setup, owner_id: str, written: set[tuple[str, str]]) -> None:
        super().__init__(MemoryCheckpointStore(setup.account))
        self._owner_id = owner_id
        self._written = written

    async def claim_ownership(self, group, claims):
        """Note claims, renewals and releases."""
        self._written.update((claim.partition_id, self._owner_id) for claim in claims)
        return await super().claim_ownership(group, claims)

    async def update_checkpoint(self, group, update):
        """Note checkpoints."""
        self._written.add((update.partition_id, self._owner_id))
        return await super().update_checkpoint(group, update)


@pytest.mark.parametrize("strategy", LoadBalancingStrategy, ids=lambda strategy: strategy.value)
async def test_a_processor_that_is_not_in_the_order_of_a_partition_makes_no_write_for_it(strategy):
    """Through an outage, a stop, a time in which neither of two candidates is there, and a join."""
    setup = Setup(partition_count=10)
    written: set[tuple[str, str]] = set()
    processors = {
        name: setup.processor(
            owner_id=name, placement=TwoOfFive(), load_balancing_strategy=strategy
        )
        for name in NAMES
    }
    for name in NAMES:
        setup.store_by_owner[name].store = NotingStore(setup, name, written)
    await asyncio.gather(*(processor.start() for processor in processors.values()))
    await seconds(30)
    planned = setup.owners()
    setup.store_by_owner["host-a"].is_out = True
    await seconds(100)
    without_a = setup.owners()
    setup.store_by_owner["host-a"].is_out = False
    await processors["host-c"].stop()
    await processors["host-d"].stop()
    await seconds(30)
    without_c_and_d = setup.owners()
    unplaced_count = processors["host-a"].statistics().unplaced_count
    await processors["host-c"].start()
    await seconds(30)
    in_the_end = setup.owners()
    await asyncio.gather(*(processor.stop() for processor in processors.values()))
    seen = [planned, without_a, without_c_and_d, in_the_end]

    planned, without_a, without_c_and_d, in_the_end = seen
    first = {str(n): candidates(str(n))[0] for n in range(10)}

    assert written <= {(str(n), name) for n in range(10) for name in candidates(str(n))}
    assert planned == first
    assert without_a == first | {"0": "host-b", "5": "host-b"}
    assert without_c_and_d == first | dict.fromkeys("27") | {"3": "host-e", "8": "host-e"}
    assert unplaced_count == 2
    assert in_the_end == first | {"3": "host-e", "8": "host-e"}
