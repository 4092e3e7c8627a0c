"""Processors come and go in good order, and nothing goes wrong: then it must cost nothing."""

import pytest

from tests.simulation.invariants import Violation
from tests.simulation.suites import play


def test_planned_changes_cost_nothing(seed):
    """No event comes twice, nothing is stolen, and who stopped stands in no record."""
    try:
        play("planned", seed)
    except Violation as violation:
        pytest.fail(str(violation), pytrace=False)
