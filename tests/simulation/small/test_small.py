"""Small worlds: one situation after another, each with what it may cost."""

import pytest

from tests.simulation.small.story import draw, failure_of, report, shrunk


def test_small_world_costs_no_more_than_its_situations_have_to(seed):
    """All invariants hold, and a planned change steals, repeats and moves nothing in vain.

    A seed that fails is reported as its fewest situations and conditions, with their history.
    """
    story = draw(seed)
    if failure_of(story) is not None:
        pytest.fail(report(shrunk(story)), pytrace=False)
