"""The examples for Spark, run as programs in the session of the tests."""

import re
import runpy
import shutil
from pathlib import Path

import pytest
from azure.eventhub import EventData

from eventproc.emulator import EventHubsEmulator
from tests.spark.conftest import COUNT, HUB, PARTITIONS, publish_events

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("spark_source", f"batch 0: {2 * COUNT} orders", "batch 1: 2 orders"),
        ("spark_sink", f"batch 0: {2 * COUNT} orders handled", "batch 1: 2 orders handled"),
    ],
)
def test_an_example_continues_where_its_last_run_stopped(
    spark, environment, published, monkeypatch, tmp_path, capsys, name, first, second
):
    """The first run handles all events, the second one only the new ones."""
    monkeypatch.chdir(tmp_path)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)  # foreachBatch runs in this very process
    logs = shutil.copytree(published, tmp_path / "logs")
    (port,) = re.findall(r":(\d+);", environment["EVENTPROC_CONNECTION_STRING"])
    outputs = []
    with EventHubsEmulator({HUB: PARTITIONS}, port=int(port), directory=logs) as emulator:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        outputs.append(capsys.readouterr().out)
        publish_events(emulator, None, EventData(b"1"), EventData(b"2"), partition_key="customer-4")
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        outputs.append(capsys.readouterr().out)

    assert first in outputs[0]
    assert second in outputs[1]
    assert "batch 0" not in outputs[1]
