"""Events that hang and events that kill, among everything else that goes wrong."""

import pytest

from tests.simulation.invariants import Violation
from tests.simulation.suites import play


@pytest.mark.parametrize("suite", ["troubled", "troubled-lanes"])
def test_what_hangs_or_kills_is_given_up_in_time(suite, seed):
    """A hang is cut off, few processes die of one event, and nothing else is lost over it."""
    try:
        play(suite, seed)
    except Violation as violation:
        pytest.fail(str(violation), pytrace=False)
