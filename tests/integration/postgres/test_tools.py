"""The command's tools on a group in PostgreSQL and the emulator's hub."""

import asyncio
import json
import uuid

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.postgres import PostgresCheckpointStore
from eventproc.models import CheckpointUpdate, ConsumerGroup, Member, OwnershipClaim
from tests.integration.cli.conftest import command, orders
from tests.integration.dashboard.conftest import start_page

__all__ = ["command", "orders", "start_page"]

COUNT = 40
"""Events in partition 0; the checkpoint is at the tenth."""


@pytest.fixture(name="where")
def _where(postgres, orders, monkeypatch):
    """Return the options that name the group: one member, which has partition 0."""
    schema = f"s{uuid.uuid4().hex}"
    monkeypatch.setenv("ORDERS_DSN", postgres.dsn)
    with EventHubProducerClient.from_connection_string(
        orders.connection_string_for("orders")
    ) as producer:
        producer.send_batch([EventData("x")] * COUNT, partition_id="0")
    group = ConsumerGroup(
        fully_qualified_namespace=f"127.0.0.1:{orders.port}", eventhub_name="orders"
    )
    asyncio.run(write(postgres.dsn, schema, group))
    return ("--eventhub", "orders", "--store", f"postgres:ORDERS_DSN?schema={schema}")


async def write(dsn, schema, group):
    """Write the records of the group."""
    claim = OwnershipClaim(partition_id="0", owner_id="worker-1", expected_etag=None)
    update = CheckpointUpdate(
        partition_id="0", offset="400", sequence_number=9, replaces=None, writer="w", state=b"sum"
    )
    async with PostgresCheckpointStore(dsn, schema=schema, create_schema=True) as store:
        await store.announce_member(group, Member(owner_id="worker-1", incarnation="i"))
        await store.claim_ownership(group, [claim])
        await store.update_checkpoint(group, update)


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("status",), {"owner_id": "worker-1", "lag": 30}),
        (("checkpoints", "list"), {"sequence_number": 9, "state_bytes": 3}),
        (("checkpoints", "lag"), {"lag": 30}),
    ],
    ids=" ".join,
)
def test_the_records_are_shown(command, orders, where, words, shown):
    """By ``status``, and by ``checkpoints`` with its lag and state."""
    env = {"EVENTPROC_CONNECTION_STRING": orders.connection_string}
    code, out, err = command.run(*words, *where, "--format", "json", **env)
    found = json.loads(out)
    rows = found.get("partitions") or found["checkpoints"]
    row = next(row for row in rows if row["partition_id"] == "0")

    assert (code, err) == (0, "")
    assert {name: row[name] for name in shown} == shown


@pytest.mark.long
def test_scale_reads_members_and_backlog(command, orders, where):
    """Its line counts the events after the checkpoint, and the member."""
    env = {"EVENTPROC_CONNECTION_STRING": orders.connection_string}
    code, out, err = command.run("scale", *where, "--checkpoint-interval", "1s", **env)
    vote = json.loads(out)

    assert (code, err) == (0, "")
    assert vote["backlog"] == 30


@pytest.mark.long
async def test_the_dashboard_shows_owner_and_checkpoint(start_page, where):
    """``start_page`` names a SQLite file first; the last ``--store`` counts."""
    found = json.dumps(await (await asyncio.to_thread(start_page, *where)).first())

    assert "worker-1" in found
