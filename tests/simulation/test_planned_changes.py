"""Processors start and stop in an orderly way, without faults."""

import pytest

from tests.simulation.invariants import Violation
from tests.simulation.suites import play


def test_planned_changes_repeat_no_event_and_steal_no_partition(seed):
    """No record names a processor that has stopped."""
    try:
        play("planned", seed)
    except Violation as violation:
        pytest.fail(str(violation), pytrace=False)
