"""The command's limit of open files."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("resource")

LOW = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))
from eventproc._command.entry_point import main
sys.exit(main())
"""

HANDLER = """
import resource
from eventproc import PartitionHandler

class Printing(PartitionHandler):
    async def initialize(self, context):
        print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)

    async def process_event(self, context, event):
        pass
"""


def test_run_raises_its_limit_of_open_files(tmp_path, orders):
    """The soft limit becomes the hard limit; a usual one is too low for a thousand partitions."""
    (tmp_path / "printing.py").write_text(HANDLER)
    arguments = ["run", "printing:Printing", "--eventhub", "orders", "--store", "sqlite:group.db"]
    with subprocess.Popen(
        [sys.executable, "-c", LOW, *arguments, "--stop-at-eof"],
        cwd=tmp_path,
        env={**os.environ, "EVENTPROC_CONNECTION_STRING": orders.connection_string},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.readline()
        process.communicate(timeout=40)

    assert printed == "4096\n"
