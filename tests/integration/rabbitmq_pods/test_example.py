"""The examples of partition queues and of a StatefulSet."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.long
def test_partition_queues_handle_every_order_once(rabbitmq):
    """Each customer's in their order; with warnings as errors, and nothing on standard error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples/partition_queues.py", rabbitmq.url],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "3 customers, all orders in order"


@pytest.mark.long
def test_the_pods_of_a_stateful_set_lose_no_order_and_overtake_none(has_rabbitmq, tmp_path):
    """What ``make demo-rabbitmq`` runs. It leaves no file."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.rabbitmq_statefulset"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
    )
    steps, _, accounts = done.stdout.partition("\n\n")
    counts = {line[:14].strip(): line[14:].split()[0] for line in accounts.splitlines()}
    published = counts.pop("published").replace(",", "")

    assert (done.returncode, done.stderr) == (0, "")
    assert steps.count("3 of 12 queues have moved") == 2, "the killed pod's, away and back"
    assert "consumer-0: 0 1 2 3   consumer-1: 4 5 6 7   consumer-2: 8 9 10 11" in steps
    assert int(published) > 0
    assert {counts[name] for name in ("lost", "out of order", "unexplained")} == {"0"}
    assert list(tmp_path.iterdir()) == []
