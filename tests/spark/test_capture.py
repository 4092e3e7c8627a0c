"""Capture files and the live hub in one query: tasks share ranges of both."""

import shutil
from datetime import timedelta

import pytest

from eventproc.emulator import CaptureConfiguration, EventHubsEmulator, Retention
from tests.spark.conftest import HUB, PARTITIONS, expected, places, publish

CAPTURED, KEPT = 600, 50
EVERYTHING = expected("0", 0, CAPTURED) + expected("1", 0, CAPTURED)


@pytest.fixture(name="emulator")
def _emulator(shared_folder):
    """Yield a hub that keeps fifty events of a partition; files have all of them."""
    capture = CaptureConfiguration(folder=shared_folder / "captured", interval=timedelta(hours=1))
    retention = Retention(events_max=KEPT)
    with EventHubsEmulator({HUB: PARTITIONS}, retention=retention, capture=capture) as emulator:
        for partition_id in ("0", "1"):
            for first in range(0, CAPTURED, 200):
                publish(emulator, partition_id, *(b"%d" % n for n in range(first, first + 200)))
        emulator.stop()  # The window is written.
        emulator.start()
        (shared_folder / "hub").write_text(emulator.connection_string_for(HUB))
        yield emulator
    shutil.rmtree(shared_folder / "captured")


@pytest.mark.usefixtures("emulator")
def test_a_batch_query_has_what_the_hub_has_deleted(spark):
    options = {"sourceRecipe": "captured_hub:source", "startingPosition": "earliest"}
    rows = spark.read.format("eventproc").options(**options).load().collect()

    assert places(rows) == EVERYTHING


@pytest.mark.since("4.2")  # before that, a start repeats the batch without commit, and no more
def test_a_stream_goes_from_the_files_into_the_hub_and_through_a_restart(stream, emulator):
    reading = stream(startingPosition="earliest", maxTasks="4")
    del reading.options["connectionString"]
    reading.options["sourceRecipe"] = "captured_hub:source"
    reading.run()
    reading.lose_last_commit()
    publish(emulator, "1", b"more")
    reading.run()

    assert reading.batches[0] == [EVERYTHING, EVERYTHING]
    assert reading.seen() == sorted([*EVERYTHING, ("1", CAPTURED)])
