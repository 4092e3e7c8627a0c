"""A fault at any point of a group's life breaks no promise.

``make night`` plays each single fault, and ``make pairs`` each pair.
"""

import json
import subprocess
import sys
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


@pytest.mark.long
def test_a_run_goes_on_where_an_earlier_one_was_stopped(tmp_path):
    """What the journal has is counted, and not played again."""
    faults = [str(fault) for fault in faults_at(play("leave").points)]
    journal = tmp_path / "journal"
    played = [["leave", fault, 1, 0, []] for fault in faults[:-2]]
    journal.write_text("".join(f"{json.dumps(each)}\n" for each in played))
    arguments = ["--scenario", "leave", "--singles", "--journal", str(journal)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.pairs", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    written = [json.loads(line)[:2] for line in journal.read_text().splitlines()]

    assert done.stdout.startswith(f"leave: {len(faults)} played, 0 cut, 0 violations\n")
    assert sorted(written[len(played) :]) == sorted(["leave", fault] for fault in faults[-2:])
