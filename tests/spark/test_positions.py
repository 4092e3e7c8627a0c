"""A query handles the first half, its positions are imported, and a processor handles the rest."""

import asyncio

import pytest
from pyspark.errors import StreamingQueryException

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc._command import main
from eventproc.sources.eventhubs import EventHubSource
from tests.integration.positions.consumers import ours_handles
from tests.spark.conftest import COUNT, HUB, expected


def test_a_query_handles_the_first_half_and_a_processor_the_rest(
    stream, emulator, tmp_path, monkeypatch, capsys
):
    """The batch that failed was planned and not committed: the processor handles its events."""
    hub = emulator.connection_string_for(HUB)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", hub)
    monkeypatch.setenv("EVENTPROC_STORE", "sqlite:group.db")
    reading = stream(startingPosition="earliest", maxEventsPerTrigger="200")
    reading.fails_in = {1}
    with pytest.raises(StreamingQueryException):
        reading.run()
    code = main(["checkpoints", "import", "--from", "spark:checkpoint", "--yes"])
    source = EventHubSource.from_connection_string(hub)
    rest = asyncio.run(
        ours_handles(source, SqliteCheckpointStore("group.db"), COUNT - 1, ["0", "1"])
    )

    assert code == 0
    assert "batch 1 was planned and not committed" in capsys.readouterr().err
    (first,) = reading.batches[0]
    assert sorted([*first, *rest]) == expected("0", 0, COUNT) + expected("1", 0, COUNT)
