"""Leases at their edge: who may act, and who may take it, when a second or two decide."""

import pytest

from tests.simulation.invariants import Violation
from tests.simulation.suites import play


def test_nobody_acts_beyond_the_edge_of_a_lease(seed):
    """And answers that are lost cost nothing."""
    try:
        play("edges", seed)
    except Violation as violation:
        pytest.fail(str(violation), pytrace=False)
