"""The example of a killed executor, run as a program with a cluster of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: `make spark`")


@pytest.mark.timeout(900)
def test_after_the_kill_of_an_executor_each_order_counts_once(tmp_path):
    """In the aggregate and in the handlers' state; some come twice. It leaves no file."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.spark_executor_killed"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=850,
    )

    assert done.returncode == 0, done.stderr
    assert "is killed (SIGKILL)" in done.stdout
    assert done.stdout.count("equal to what was published") == 2
    assert list(tmp_path.iterdir()) == []
