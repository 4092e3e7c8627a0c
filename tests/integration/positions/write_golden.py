"""Writes the golden files anew: ``python -m tests.integration.positions.write_golden``.

Each client handles events 0 to 4 of partition 0 of a hub of two partitions; partition 1 is empty.
It needs `make test`'s parts.
"""

import asyncio
import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from azure.storage.blob import ContainerClient

import spark_integration
from eventproc.emulator import EventHubsEmulator
from eventproc.testing import Azurite
from tests.integration.positions.blobs import GOLDEN, as_golden, blobs_in
from tests.integration.positions.consumers import (
    go_handles,
    java_handles,
    javascript_handles,
    publish,
    python_handles,
)
from tests.integration.sources.kafka_topic import KafkaTopic
from tests.servers.kafka_broker import KafkaBroker
from tests.spark.conftest import KAFKA_SOURCE

PROGRAMS: Final = {
    "python": python_handles,
    "javascript": javascript_handles,
    "java": java_handles,
    "go": go_handles,
}
WITH_PORT: Final = {"python", "go"}
"""The clients that write the namespace with its port."""


async def write_azure_sdks() -> None:
    """Write ``python.json`` and so on: the blobs of a group of each SDK."""
    with EventHubsEmulator({"Orders": 2}) as emulator, Azurite() as azurite:
        hub, storage = emulator.connection_string_for("Orders"), azurite.connection_string
        await publish(hub, ["0"], 6)
        for name, handles in PROGRAMS.items():
            with ContainerClient.from_connection_string(storage, f"of-{name}") as container:
                container.create_container()
                await handles(hub, storage, f"of-{name}", 4, ["0"])
                namespace = f"127.0.0.1:{emulator.port}" if name in WITH_PORT else "127.0.0.1"
                (GOLDEN / f"{name}.json").write_text(as_golden(blobs_in(container), namespace))


def write_spark() -> None:
    """Write ``spark.json`` and ``spark-kafka.json``: the files of a ``checkpointLocation``."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - installed by `make spark`

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.jars", ",".join(map(str, KAFKA_SOURCE))).getOrCreate()
    spark_integration.register(session)
    with EventHubsEmulator({"Orders": 2}) as emulator, KafkaBroker() as broker:
        hub = emulator.connection_string_for("Orders")
        asyncio.run(publish(hub, ["0"], 5))
        KafkaTopic(broker, "orders", 2).publish(0, *[b"x"] * 5)
        ours = session.readStream.format("eventproc").option("connectionString", hub)
        kafka = session.readStream.format("kafka").option("subscribe", "orders")
        kafka = kafka.option("kafka.bootstrap.servers", broker.bootstrap_servers)
        sources = {
            "spark": ours.option("startingPosition", "earliest"),
            "spark-kafka": kafka.option("startingOffsets", "earliest"),
        }
        for name, source in sources.items():
            with tempfile.TemporaryDirectory() as folder:
                writer = source.load().writeStream.foreachBatch(lambda frame, _: frame.collect())
                writer = writer.option("checkpointLocation", folder)
                writer.trigger(availableNow=True).start().awaitTermination()
                texts = {
                    str(path.relative_to(folder)): path.read_text()
                    for path in sorted(Path(folder).rglob("*"))
                    if path.is_file() and path.suffix != ".crc"
                }
                text = json.dumps(texts, indent=2) + "\n"
                text = text.replace(f"127.0.0.1:{emulator.port}", "{namespace}")
                (GOLDEN / f"{name}.json").write_text(text)
    session.stop()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(write_azure_sdks())
        write_spark()
