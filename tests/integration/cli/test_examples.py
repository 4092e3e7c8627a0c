"""Every example runs, and prints the expected line."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
LAST_LINES = {
    "blocking_functions.py": "4 partitions in 4 threads",
    "captured_history.py": "1000 events in order, of which the hub had kept 50",
    "columns.py": "b'many': not an amount",
    "dead_letters.py": "the handler failed: KeyError: 'article 9' (attempts: 3)",
    "decoding.py": "is no Order: Object missing required field `count`",
    "different_machines.py": "{'large': 9, 'medium': 5, 'small': 2}\n{'medium': 13, 'small': 3}",
    "exact_totals.py": "",
    "exactly_once.py": "100 rows of 100 orders",
    "first_program.py": "10 greeted",
    "licence_keys.py": "3, 3, 2, 2",
    "orders.py": "",
    "own_source.py": "clauses of the contract are kept",
    "poison.py": "b'twelve': ValueError: invalid literal for int() with base 10: b'twelve'",
    "rehearsal.py": "",
    "running_totals.py": "150 deliveries of 100 events, total 5050",
    "scheduled_job.py": "3 writers of 3 reports",
    "tenant_pollers.py": "polled: anz, apac, latam",
    "testing_a_handler.py": "2 tests of a handler, passed",
}
"""The last line that each example prints; a handler alone prints nothing."""

IN_SPARK = {"spark_fleet.py", "spark_sink.py", "spark_source.py"}
"""Run by ``tests/spark``, in its session."""

WITH_RABBITMQ = {"partition_queues.py"}
"""Run by ``tests/integration/rabbitmq_pods``, where RabbitMQ can be had."""


ON_A_CLUSTER = {"spark_executor_killed.py"}
"""Run by ``tests/spark/test_executor_killed.py``."""


def test_every_example_is_tested():
    """The tables above have every file in ``examples``."""
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(
        LAST_LINES.keys() | IN_SPARK | WITH_RABBITMQ | ON_A_CLUSTER
    )


@pytest.mark.parametrize("name", LAST_LINES)
def test_an_example_runs_without_warnings(name):
    """Each example, run as a program with warnings as errors, prints its last line."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name],
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )

    unexpected = [line for line in done.stderr.splitlines() if " WARNING eventproc." not in line]
    assert (done.returncode, unexpected) == (0, [])
    assert done.stdout.rstrip().endswith(LAST_LINES[name])
