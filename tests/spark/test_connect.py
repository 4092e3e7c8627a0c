"""Spark Connect: a client without Java, and a server that is another process."""

import asyncio
import json
from pathlib import Path

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.emulator import EventHubsEmulator
from eventproc.models import Checkpoint, ConsumerGroup
from tests.spark.conftest import COUNT, HERE, HUB
from tests.spark.sink_handlers import FOLDER
from tests.spark.standalone import JAVA, Driver, daemon, wait_for

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.enabled": "false",
}
GROUP = ConsumerGroup(fully_qualified_namespace="127.0.0.1", eventhub_name=HUB)
SUM = sum(range(COUNT))


async def checkpoints(file: Path) -> list[Checkpoint | None]:
    """Return the stored checkpoint of each partition."""
    async with SqliteCheckpointStore(file) as store:
        return [await store.read_checkpoint(GROUP, partition_id) for partition_id in "012"]


def test_a_client_reads_publishes_and_hands_rows_to_a_handler(
    emulator: EventHubsEmulator, tmp_path: Path
) -> None:
    """All of it runs on the server. What Spark Connect cannot do is refused with the reason."""
    source = {
        "connectionString": emulator.connection_string_for(HUB),
        "startingPosition": "earliest",
    }
    sink = {
        "handler": "sink_handlers:Orders",
        "checkpointStore": f"sqlite:{tmp_path}/group.db",
        "fullyQualifiedNamespace": GROUP.fully_qualified_namespace,
        "eventHubName": HUB,
    }
    environment = {"PYTHONPATH": str(HERE), FOLDER: str(tmp_path), "SPARK_DAEMON_MEMORY": "512m"}
    settings = [text for name, value in SETTINGS.items() for text in ("--conf", f"{name}={value}")]
    submit = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", *settings]
    with daemon(
        tmp_path / "server.log", *submit, "--class", SERVER, "spark-internal", env=environment
    ) as server:
        port = wait_for(server, r"Spark Connect server started at: \S*:(\d+)")
        client = Driver(
            [
                str(HERE / "connect_program.py"),
                json.dumps(source),
                json.dumps(sink),
                str(tmp_path),
            ],
            {"SPARK_REMOTE": f"sc://127.0.0.1:{port}", "JAVA_HOME": "/nowhere"},
            tmp_path / "client.log",
        )
        try:
            assert client.wait() == 0, client.text[-3000:]
        finally:
            client.kill()
    (line,) = [line for line in client.text.splitlines() if line.startswith("FOUND")]
    found = json.loads(line.removeprefix("FOUND"))

    assert found["session"] == "pyspark.sql.connect.session"
    assert found["rows"] == sorted([*([p, n] for p in "01" for n in range(COUNT)), ["2", 1000]])
    assert found["lag"] == {"events": 0, "seconds": 0}
    assert "cannot work on Spark Connect" in found["foreachBatch"]
    assert "Spark Connect" in found["fleet"]
    stored = asyncio.run(checkpoints(tmp_path / "group.db"))
    assert [(each.sequence_number, each.state) for each in stored if each] == [
        (COUNT - 1, b"%d" % SUM),
        (COUNT - 1, b"%d" % SUM),
        (0, b"1000"),
    ]
