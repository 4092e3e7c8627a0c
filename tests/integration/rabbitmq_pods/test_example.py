"""The examples of partition queues and of streams."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
LAST_LINES = {
    "partition_queues.py": "3 customers, all orders in order",
    "rabbitmq_streams.py": "{'anna': 1140, 'ben': 1180, 'cleo': 1220}",
}


@pytest.mark.long
@pytest.mark.parametrize("name", LAST_LINES)
def test_an_example_handles_every_order_once(rabbitmq, name):
    """Each customer's in their order; with warnings as errors, and nothing on standard error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name, rabbitmq.url],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == LAST_LINES[name]
