"""Sink and source of a user's program with checkpoints in PostgreSQL, and in an Azure table."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.tables import TableCheckpointStore
from eventproc.emulator import EventHubsEmulator
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore
from eventproc.testing import Azurite
from tests.servers.postgres_server import PostgresServer
from tests.spark import sink_handlers
from tests.spark.conftest import COUNT, HUB, expected, publish

HERE = Path(__file__).parent
GROUP = ConsumerGroup(fully_qualified_namespace="127.0.0.1", eventhub_name=HUB)
VARIABLE = "EVENTPROC_TEST_STORE"


def run(folder: Path, secret: str, source: dict[str, str], sink: dict[str, str]) -> None:
    """Run a user's program, with its own Spark, until every event is handled."""
    environment = {"PYTHONPATH": str(HERE), sink_handlers.FOLDER: str(folder), VARIABLE: secret}
    subprocess.run(
        [
            sys.executable,
            HERE / "sink_program.py",
            json.dumps(source),
            json.dumps(sink),
            folder / f"checkpoint-{uuid.uuid4().hex}",
        ],
        env={**os.environ, **environment},
        check=True,
        timeout=170,
    )


async def check(
    folder: Path, emulator: EventHubsEmulator, store: CheckpointStore, secret: str, **of: str
) -> None:
    """Handle all events; a query without Spark's own progress continues at the checkpoints."""
    async with store:
        pass  # It creates what the store needs.
    hub = {"connectionString": emulator.connection_string_for(HUB)}
    names = {"fullyQualifiedNamespace": GROUP.fully_qualified_namespace, "eventHubName": HUB}
    sink = {"handler": "sink_handlers:Orders", **names, **of}
    run(folder, secret, {**hub, "startingPosition": "earliest"}, sink)
    publish(emulator, "1", *[b"1"] * 5)
    run(folder, secret, {**hub, "startingPositions": "checkpoints", **of}, sink)
    lines = [json.loads(line) for line in (folder / "ledger").read_text().splitlines()]
    async with store:
        stored = {c.partition_id: c.sequence_number for c in await store.list_checkpoints(GROUP)}

    assert sorted((line["partition"], line["number"]) for line in lines) == [
        *expected("0", 0, COUNT),
        *expected("1", 0, COUNT + 5),
    ]
    assert stored == {"0": COUNT - 1, "1": COUNT + 4}


@pytest.mark.long
async def test_checkpoints_of_a_query_are_in_postgresql(emulator, tmp_path):
    """``postgres:NAME``: driver and executors find the connection string in their environment."""
    with PostgresServer() as server:
        await check(
            tmp_path,
            emulator,
            PostgresCheckpointStore(server.dsn, create_schema=True),
            server.dsn,
            checkpointStore=f"postgres:{VARIABLE}",
        )


@pytest.mark.long
async def test_checkpoints_of_a_query_are_in_an_azure_table(
    emulator: EventHubsEmulator, tables: Azurite, tmp_path: Path
) -> None:
    """``tables:TABLE``, by the connection string of the storage account."""
    table, secret = f"t{uuid.uuid4().hex}", tables.connection_string
    await check(
        tmp_path,
        emulator,
        TableCheckpointStore.from_connection_string(secret, table, create_table=True),
        secret,
        checkpointStore=f"tables:{table}",
        storageConnectionString=f"env:{VARIABLE}",
    )
