"""One change in a balanced group: no more partitions move than must."""

import pytest

from tests.simulation.invariants import Violation
from tests.simulation.moves import fewest_moves
from tests.simulation.suites import play


def test_fewest_moves_counts_free_partitions_and_surplus():
    """Extra partitions stay with the owners that have them."""
    owners = dict(enumerate(["a"] * 5 + ["b"] * 2 + ["gone"]))
    owner_by_partition = {str(number): owner for number, owner in owners.items()}

    assert fewest_moves(owner_by_partition, {"a": 5, "b": 2}, []) == 1 + 1
    assert fewest_moves(owner_by_partition, {"a": 5, "b": 2}, ["new"]) == 1 + 2


def test_a_change_moves_the_fewest_partitions(seed):
    """A processor that joins, leaves, crashes or is replaced, with every strategy."""
    try:
        play("moves", seed)
    except Violation as violation:
        pytest.fail(str(violation), pytrace=False)
