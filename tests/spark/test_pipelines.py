"""The pipeline of ``docs/spark-pipelines.md``, as a user copies it and runs it again."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

from eventproc.emulator import EventHubsEmulator
from tests.spark.conftest import COUNT, HUB, expected, publish

pytestmark = pytest.mark.since("4.1")
PAGE = Path(__file__).parents[2] / "docs" / "spark-pipelines.md"
COMMANDS = Path(pyspark.__file__).parent / "bin"
SETTINGS = {
    "spark.ui.enabled": "false",
    # Compiling costs more than it gains where every query runs once.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class Pipeline:
    """The page's pipeline, in a folder of its own."""

    def __init__(self, folder: Path, emulator: EventHubsEmulator) -> None:
        self._folder = folder
        page = PAGE.read_text("utf-8")
        (definition,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        (specification,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
        (command,) = re.findall(r"^EVENTHUB=\S+ (spark-pipelines .*)$", page, re.MULTILINE)
        (folder / "transformations").mkdir()
        (folder / "transformations/orders.py").write_text(definition)
        (folder / "spark-pipeline.yml").write_text(
            specification.replace("/srv/orders", str(folder))
        )
        name, *arguments = shlex.split(command)
        settings = [text for pair in SETTINGS.items() for text in ("--conf", "=".join(pair))]
        self._command = [str(COMMANDS / name), *settings, *arguments]
        self._environment = {
            **os.environ,
            "EVENTHUB": emulator.connection_string_for(HUB),
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }

    def run(self) -> None:
        """Bring the tables up to date."""
        done = subprocess.run(
            self._command,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]

    def rows(self, table: str) -> list[tuple[object, ...]]:
        """Return what is in a table, sorted."""
        files = sorted((self._folder / "spark-warehouse" / table).glob("*.parquet"))
        found = [zip(*pq.read_table(file).to_pydict().values(), strict=True) for file in files]
        return sorted(row for rows in found for row in rows)


def test_each_run_adds_the_new_events_once_and_the_aggregate_follows(emulator, tmp_path):
    """The second run is another process, with another Java."""
    pipeline = Pipeline(tmp_path, emulator)
    pipeline.run()
    orders = [(*place, place[1]) for id_ in "01" for place in expected(id_, 0, COUNT)]

    assert pipeline.rows("orders") == orders
    assert pipeline.rows("totals") == [(2 * COUNT, 2 * sum(range(COUNT)))]

    publish(emulator, "2", b"1000")
    publish(emulator, "0", b"2000")
    pipeline.run()

    assert pipeline.rows("orders") == sorted([*orders, ("2", 0, 1000), ("0", COUNT, 2000)])
    assert pipeline.rows("totals") == [(2 * COUNT + 2, 2 * sum(range(COUNT)) + 3000)]
