"""A group rests, then one thing changes: no more partitions move than must."""

import pytest

from tests.simulation.invariants import Violation
from tests.simulation.moves import fewest_moves
from tests.simulation.suites import play


def test_the_fewest_moves_are_counted():
    """What nobody holds any more, and what is above a share; extra places stay where they are."""
    owners = dict(enumerate(["a"] * 5 + ["b"] * 2 + ["gone"]))
    owner_by_partition = {str(number): owner for number, owner in owners.items()}

    assert fewest_moves(owner_by_partition, {"a": 5, "b": 2}, []) == 1 + 1
    assert fewest_moves(owner_by_partition, {"a": 5, "b": 2}, ["new"]) == 1 + 2


def test_no_more_moves_than_must(seed):
    """Whoever joins, leaves, crashes or is replaced, with every strategy."""
    try:
        play("moves", seed)
    except Violation as violation:
        pytest.fail(str(violation), pytrace=False)
