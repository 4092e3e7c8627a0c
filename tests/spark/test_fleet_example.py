"""The example of a fleet, run as a program in the session of the tests."""

import os
import re
import runpy
import shutil
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

from eventproc.emulator import EventHubsEmulator
from tests.spark.conftest import COUNT, HUB, PARTITIONS

EXAMPLE = Path(__file__).parents[2] / "examples/spark_fleet.py"
TIMEOUT_S = 240.0


def test_the_example_handles_events_until_it_is_interrupted(
    spark, environment, published, monkeypatch, tmp_path, capsys
):
    """A handler class of the program is sent to the executors; Ctrl+C releases all partitions."""
    monkeypatch.chdir(tmp_path)
    logs = shutil.copytree(published, tmp_path / "logs")
    (port,) = re.findall(r":(\d+);", environment["EVENTPROC_CONNECTION_STRING"])
    sigint_handler = signal.getsignal(signal.SIGINT)
    lines: list[str] = []

    def interrupt_when_all_is_handled() -> None:
        give_up_at = time.monotonic() + TIMEOUT_S
        while f"{2 * COUNT} events handled" not in "".join(lines):
            lines.append(capsys.readouterr().out)
            if time.monotonic() > give_up_at:
                break
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    with EventHubsEmulator({HUB: PARTITIONS}, port=int(port), directory=logs):
        interrupting = threading.Thread(target=interrupt_when_all_is_handled)
        interrupting.start()
        runpy.run_path(str(EXAMPLE), run_name="__main__")
        interrupting.join()

    assert f"{2 * COUNT} orders handled" in capsys.readouterr().out
    with closing(sqlite3.connect(tmp_path / "spark-fleet.db")) as store:
        owners = store.execute("SELECT owner_id FROM ownership").fetchall()
        assert owners == [(None,)] * PARTITIONS, "all partitions are released"
    assert signal.getsignal(signal.SIGINT) is sigint_handler, "the signal handler is restored"
