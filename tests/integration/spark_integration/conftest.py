"""A hub that is published once, and copied for each test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage

from eventproc.emulator import EventHubsEmulator
from spark_integration._options import SourceOptions, parse_source_options
from spark_integration._source.planner import Lag, StreamPlanner

COUNT = 1000
"""Events in partitions 0 and 1; partition 2 is empty."""


@pytest.fixture(name="published", scope="module")
def _published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the logs of a hub of three partitions, the last of them empty.

    Published once: Azure's producer takes a second for each partition.
    """
    directory: Path = tmp_path_factory.mktemp("published") / "logs"
    with EventHubsEmulator({"orders": 3}, directory=directory) as emulator:
        for partition_id in ("0", "1"):
            publish(emulator, partition_id, *(b"%d" % number for number in range(COUNT)))
    return directory


@pytest.fixture(name="own")
def _own(published: Path, tmp_path: Path) -> Iterator[EventHubsEmulator]:
    """Yield an emulator for one test."""
    shutil.copytree(published, tmp_path / "logs")
    with EventHubsEmulator({"orders": 3}, directory=tmp_path / "logs") as emulator:
        yield emulator


def publish(
    emulator: EventHubsEmulator, partition_id: str, *bodies: bytes, batch: int = 500
) -> None:
    with EventHubProducerClient.from_connection_string(
        emulator.connection_string_for("orders")
    ) as producer:
        events: list[EventData | AmqpAnnotatedMessage] = [EventData(body) for body in bodies]
        for begin in range(0, len(events), batch):
            producer.send_batch(events[begin : begin + batch], partition_id=partition_id)


def options_for(emulator: EventHubsEmulator, **options: str) -> SourceOptions:
    given = {"connectionString": emulator.connection_string_for("orders"), **options}
    return parse_source_options(given, is_stream=True)


def reported(planner: StreamPlanner) -> tuple[dict[str, int], Lag]:
    """Return the ends and the lag that a query's progress shows."""
    found = planner.report()
    assert found is not None
    return found
