"""Every example runs, says what it should, and is short."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
LINES_MAX = 60
LAST_WORDS = {
    "blocking_functions.py": "4 partitions in 4 threads",
    "exact_totals.py": "",
    "first_program.py": "10 greeted",
    "orders.py": "",
    "poison.py": "b'twelve': ValueError: invalid literal for int() with base 10: b'twelve'",
    "running_totals.py": "150 deliveries of 100 events, total 5050",
    "testing_a_handler.py": "2 tests of a handler, passed",
}
"""What each says at its end; a handler alone says nothing."""

IN_SPARK = {"spark_fleet.py", "spark_sink.py", "spark_source.py"}
"""Run by ``tests/spark``, in the session that is there."""


def test_every_example_is_known():
    """A new one needs a line above."""
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(
        LAST_WORDS.keys() | IN_SPARK
    )


@pytest.mark.parametrize("name", LAST_WORDS)
def test_an_example_runs(name):
    """As a program, with warnings as errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )

    loud = [line for line in done.stderr.splitlines() if " WARNING eventproc." not in line]
    assert (done.returncode, loud) == (0, [])
    assert done.stdout.rstrip().endswith(LAST_WORDS[name])


@pytest.mark.parametrize("name", sorted(LAST_WORDS.keys() | IN_SPARK))
def test_an_example_is_short(name):
    """It fits on a page."""
    assert len((EXAMPLES / name).read_text("utf-8").splitlines()) <= LINES_MAX


def test_the_program_of_the_readme_is_short():
    """It runs with the other blocks of the page; here it is only counted."""
    readme = (EXAMPLES.parent / "README.md").read_text("utf-8")
    block = readme.split("```python\n")[1].split("```")[0]
    shown = [line for line in block.splitlines() if line.strip()]

    assert len(shown) <= 16
