"""The example of partition queues."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples/partition_queues.py"


@pytest.mark.long
def test_the_example_handles_the_orders_of_each_customer_in_their_order(has_rabbitmq):
    """With warnings as errors, and nothing on standard error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLE],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "3 customers, all orders in order\n"
