"""The program of ``docs/spark-delta.md``, as a user copies it: each event is once in the table."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eventproc.emulator import EventHubsEmulator
from tests.spark.conftest import COUNT, HUB, expected, publish

pytestmark = pytest.mark.delta
PAGE = Path(__file__).parents[2] / "docs" / "spark-delta.md"


class Program:
    """The page's program, in a folder of its own."""

    def __init__(self, folder: Path, emulator: EventHubsEmulator) -> None:
        self._folder = folder
        (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
        (folder / "orders.py").write_text(code)
        ivy = Path(sys.prefix, "ivy")
        self._environment = {
            **os.environ,
            "EVENTHUB": emulator.connection_string_for(HUB),
            "PYSPARK_SUBMIT_ARGS": (
                f"--master local[2] --driver-memory 512m --conf spark.jars.ivy={ivy} "
                "--conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=1 pyspark-shell"
            ),
        }

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "orders.py"],
            cwd=self._folder,
            env=self._environment,
            start_new_session=True,
            stderr=(self._folder / "stderr").open("ab"),
        )

    def run(self) -> None:
        assert self.start().wait(300) == 0, (self._folder / "stderr").read_text()[-3000:]

    def kill_after_the_first_write(self) -> None:
        """SIGKILL, to Java, too."""
        running = self.start()
        give_up_at = time.monotonic() + 300
        while not list(self._folder.glob("lake/orders/_delta_log/*.json")):
            assert running.poll() is None, (self._folder / "stderr").read_text()[-3000:]
            assert time.monotonic() < give_up_at
            time.sleep(0.002)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()

    def forget_last_commit(self) -> None:
        """As if the driver had died between the table's commit and Spark's."""
        last = max(
            self._folder.glob("lake/orders-offsets/commits/[0-9]*"), key=lambda p: int(p.name)
        )
        last.unlink()
        (last.parent / f".{last.name}.crc").unlink(missing_ok=True)

    def lose_offsets(self) -> None:
        shutil.rmtree(self._folder / "lake/orders-offsets")

    def rows(self) -> Counter[tuple[str, int]]:
        return Counter(self._rows())

    def _rows(self) -> Iterator[tuple[str, int]]:
        """Read the files that the table's log names."""
        table = self._folder / "lake/orders"
        for log in table.glob("_delta_log/*.json"):
            for action in map(json.loads, log.read_text().splitlines()):
                if "add" in action:
                    columns = ["partition", "sequenceNumber"]
                    found = pq.read_table(table / action["add"]["path"], columns=columns)
                    yield from zip(*found.to_pydict().values(), strict=True)


def test_each_event_is_once_in_the_table_whatever_happens_to_the_driver(emulator, tmp_path):
    """Killed after a write, a batch is run again; a new ``checkpointLocation`` continues."""
    program = Program(tmp_path, emulator)
    program.kill_after_the_first_write()
    program.run()
    everything = Counter(expected("0", 0, COUNT) + expected("1", 0, COUNT))

    assert program.rows() == everything

    program.forget_last_commit()
    program.run()

    assert program.rows() == everything

    program.lose_offsets()
    publish(emulator, "2", b"later")
    publish(emulator, "0", b"last")
    program.run()
    everything |= Counter([("2", 0), ("0", COUNT)])

    assert program.rows() == everything
