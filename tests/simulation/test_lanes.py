"""Key lanes through every kind of fault, and through planned changes."""

import pytest

from tests.simulation.invariants import Violation
from tests.simulation.suites import play


@pytest.mark.parametrize("suite", ["lanes", "planned-lanes"])
def test_key_lanes_keep_the_order_of_keys_and_lose_no_event(suite, seed):
    """Only handled events are recorded as done, and planned hand-overs repeat none."""
    try:
        play(suite, seed)
    except Violation as violation:
        pytest.fail(str(violation), pytrace=False)
