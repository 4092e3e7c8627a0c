"""Key lanes through every kind of fault."""

import pytest

from tests.simulation.invariants import Violation
from tests.simulation.suites import play


def test_key_lanes_keep_the_order_of_keys_and_lose_no_event(seed):
    """Only handled events are recorded as done."""
    try:
        play("lanes", seed)
    except Violation as violation:
        pytest.fail(str(violation), pytrace=False)
