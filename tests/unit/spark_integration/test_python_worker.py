"""Set-up of Spark's Python processes, in a process without configured logging."""

import subprocess
import sys

PROGRAM = """
import gc, logging
from eventproc.logs import get_logger
from spark_integration.python_worker import init_python_worker
{before}
init_python_worker()
init_python_worker()
log = get_logger("eventproc.spark", partition_id="3")
log.warning("events_expired", missing_count=40)
log.info("range_resumed")
assert gc.get_freeze_count() > 0
"""


def stderr_lines(before: str = "") -> list[str]:
    """Return the lines that such a process writes to standard error."""
    program = PROGRAM.format(before=before)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()


def test_warnings_are_written_once_with_their_fields():
    """Standard error goes to the executor's log; repeated set-up writes no line twice."""
    (line,) = stderr_lines()

    assert line.endswith("WARNING eventproc.spark: events_expired partition_id=3 missing_count=40")


def test_configured_logging_is_not_changed():
    """For example PySpark's own capture of worker logs."""
    assert stderr_lines("logging.basicConfig(format='%(message)s')") == [
        "events_expired partition_id=3 missing_count=40"
    ]
