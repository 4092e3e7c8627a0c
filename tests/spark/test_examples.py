"""The examples for Spark, as programs, in the session that is there."""

import re
import runpy
import shutil
from pathlib import Path

from azure.eventhub import EventData

from eventproc.emulator import EventHubsEmulator
from tests.spark.conftest import COUNT, HUB, PARTITIONS, publish_events

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_stream_goes_on_where_the_last_run_stopped(
    spark, environment, published, monkeypatch, tmp_path, capsys
):
    """Everything at first, and then only what is new."""
    monkeypatch.chdir(tmp_path)
    logs = shutil.copytree(published, tmp_path / "logs")
    (port,) = re.findall(r":(\d+);", environment["EVENTPROC_CONNECTION_STRING"])
    with EventHubsEmulator({HUB: PARTITIONS}, port=int(port), directory=logs) as emulator:
        runpy.run_path(str(EXAMPLES / "spark_source.py"), run_name="__main__")
        first = capsys.readouterr().out
        publish_events(emulator, None, EventData(b"1"), EventData(b"2"), partition_key="customer-4")
        runpy.run_path(str(EXAMPLES / "spark_source.py"), run_name="__main__")
        second = capsys.readouterr().out

    assert f"batch 0: {2 * COUNT} orders" in first
    assert "batch 1: 2 orders" in second
    assert "|  customer-4|    2|" in second
