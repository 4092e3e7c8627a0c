"""Key lanes through everything that goes wrong, and through planned changes."""

import pytest

from tests.simulation.invariants import Violation
from tests.simulation.suites import play


@pytest.mark.parametrize("suite", ["lanes", "planned-lanes"])
def test_keys_are_kept_in_order_and_nothing_is_lost(suite, seed):
    """Nothing is said to be done that is not, and a planned hand-over repeats nothing."""
    try:
        play(suite, seed)
    except Violation as violation:
        pytest.fail(str(violation), pytrace=False)
