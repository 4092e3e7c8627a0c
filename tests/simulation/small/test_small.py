"""Small worlds: one situation after another, each with what it may cost."""

import pytest

from tests.simulation.small.scenario import draw, failure_of, report, shrunk


def test_small_world_costs_no_more_than_its_situations_have_to(seed):
    """All invariants hold, and a planned change steals, repeats and moves nothing in vain.

    A seed that fails is reported as its fewest situations and conditions, with their history.
    """
    scenario = draw(seed)
    if failure_of(scenario) is not None:
        pytest.fail(report(shrunk(scenario)), pytrace=False)
