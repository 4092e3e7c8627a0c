"""No secret appears in plans, logs, the offset log or the event log."""

from pathlib import Path

import pytest

from eventproc.emulator import EventHubsEmulator
from tests.spark.conftest import HUB, Stream

KEY = "dGhpcy1pcy12ZXJ5LXNlY3JldA"


def connection_string(emulator: EventHubsEmulator) -> str:
    """Return a connection string with a key that occurs nowhere else; the emulator accepts any."""
    given = emulator.connection_string_for(HUB)
    begin = given.index("SharedAccessKey=") + len("SharedAccessKey=")
    return given[:begin] + KEY + given[given.index(";", begin) :]


def holders(*folders: Path) -> list[str]:
    """Return the names of files that contain the key."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert files
    return [path.name for path in files if KEY.encode() in path.read_bytes()]


def test_no_output_contains_the_key(spark, emulator, spark_logs, tmp_path, capsys):
    """The key is given as an option, and neither queries that succeed nor those that fail show
    it."""
    options = {"connectionString": connection_string(emulator), "startingPosition": "earliest"}
    frame = spark.read.format("eventproc").options(**options).load()
    frame.explain(extended=True)
    frame.explain("formatted")
    frame.count()
    stream = Stream(spark, tmp_path / "checkpoint", options)
    query = stream.start(availableNow=True)
    query.awaitTermination()
    query.explain(extended=True)
    with pytest.raises(Exception, match="did you mean") as refused:
        spark.read.format("eventproc").options(**options, maxTask="3").load().collect()
    emulator.stop()
    with pytest.raises(Exception, match="SourceUnavailableError") as failed:
        spark.read.format("eventproc").options(**options, operationTimeout="1ms").load().count()
    emulator.start()
    shown = [
        capsys.readouterr().out,
        frame._jdf.queryExecution().debug().toString(),
        *(entry.json for entry in query.recentProgress),
        str(refused.value),
        str(failed.value),
        str(frame),
    ]

    assert "BatchScan eventproc" in shown[0]
    assert "MicroBatchScan" in shown[0]
    assert b"INFO" in spark_logs.text.read_bytes()
    assert [text for text in shown if KEY in text] == []
    assert holders(tmp_path / "checkpoint", spark_logs.directory) == []


def test_the_search_finds_a_key(tmp_path):
    """A file that contains the key is found, so the test above can fail."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets/0").write_text(f"SharedAccessKey={KEY};")

    assert holders(tmp_path) == ["0"]
