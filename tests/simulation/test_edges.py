"""Leases close to their expiration: which processor may act, when a second or two decide."""

import pytest

from tests.simulation.invariants import Violation
from tests.simulation.suites import play


def test_no_processor_acts_after_its_lease_has_expired(seed):
    """And lost answers cost no partition."""
    try:
        play("edges", seed)
    except Violation as violation:
        pytest.fail(str(violation), pytrace=False)
