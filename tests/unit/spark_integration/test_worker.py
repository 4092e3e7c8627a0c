"""What Spark's Python processes need from us, in a process that nobody configured."""

import subprocess
import sys

PROGRAM = """
import gc, logging
from eventproc.logs import get_logger
from spark_integration.worker import settle_in
{before}
settle_in()
settle_in()
log = get_logger("eventproc.spark", partition_id="3")
log.warning("events_expired", missing_count=40)
log.info("range_resumed")
assert gc.get_freeze_count() > 0
"""


def said(before: str = "") -> list[str]:
    """Return what such a process writes to standard error."""
    program = PROGRAM.format(before=before)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()


def test_warnings_are_seen_once_with_their_fields():
    """Standard error is Spark's log of the executor."""
    (line,) = said()

    assert line.endswith("WARNING eventproc.spark events_expired partition_id='3' missing_count=40")


def test_a_program_that_configures_logging_is_left_alone():
    """PySpark's own capture of worker logs, for example."""
    assert said("logging.basicConfig(format='%(message)s')") == ["events_expired"]
