"""The Spark demo, with few events: nothing lost, both results right, nobody left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

EVENTS = 3000


def test_the_demo_loses_an_executor_and_no_event(tmp_path):
    """The report is alone on standard output, and good; a process was killed."""
    command = f"-m eventproc.cli demo-spark --events {EVENTS} --partitions 3 --store sqlite"
    done = subprocess.run(
        [sys.executable, *command.split(), "--format", "json"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)

    assert (done.returncode, report["problems"]) == (0, [])
    assert (report["published"], report["handled"], report["lost"]) == (EVENTS, EVENTS, 0)
    assert report["aggregate_matches"] is True
    assert report["state_matches"] is True
    assert report["partitions_at_end"] == report["partitions"] == 3
    assert report["batches"] > 1
    assert not Path(f"/proc/{report['killed_executor']}").exists()
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
