"""Events that hang and events that kill their process, with all other faults."""

import pytest

from tests.simulation.invariants import Violation
from tests.simulation.suites import play


@pytest.mark.parametrize("suite", ["troubled", "troubled-lanes"])
def test_events_that_hang_or_kill_are_given_up_in_time(suite, seed):
    """Hanging calls are cancelled, few processes die of one event, and no other event is lost."""
    try:
        play(suite, seed)
    except Violation as violation:
        pytest.fail(str(violation), pytrace=False)
