"""A fault at any point of a group's life breaks no promise.

``make night`` plays each single fault, and ``make pairs`` each pair.
"""

from itertools import islice
from random import Random

import pytest

from tests.simulation.pairs.play import faults_at, play, seconds_after
from tests.simulation.pairs.scenarios import SCENARIOS

SINGLES = 20
PAIRS_OF_EACH = 2


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_group_without_faults_comes_to_rest(scenario):
    found = play(scenario)

    assert found.violation is None, str(found)
    assert len(found.points) >= 20, "the faults of the other tests have points"


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_fault_and_no_pair_of_faults_breaks_a_promise(scenario):
    """Drawn: a tenth of the single faults, and some pairs that each of them begins."""
    rng = Random(scenario)
    for fault in rng.sample(list(faults_at(play(scenario).points)), SINGLES):
        first = play(scenario, [fault])
        assert first.violation is None, str(first)
        pairs = list(seconds_after(first))
        for pair in islice(rng.sample(pairs, len(pairs)), PAIRS_OF_EACH):
            second = play(scenario, pair)
            assert second.violation is None, str(second)


@pytest.mark.night
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_single_fault_breaks_a_promise(scenario):
    for fault in faults_at(play(scenario).points):
        found = play(scenario, [fault])
        assert found.violation is None, str(found)
