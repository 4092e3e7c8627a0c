"""The command's tools on a group in PostgreSQL or an Azure table, and the emulator's hub."""

import asyncio
import json
import re
import shlex
import uuid
from dataclasses import dataclass

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.tables import TableCheckpointStore
from eventproc.models import CheckpointUpdate, ConsumerGroup, Member, OwnershipClaim
from eventproc.ports import CheckpointStore
from tests.integration.cli.conftest import command, orders
from tests.integration.dashboard.conftest import start_page

__all__ = ["command", "orders", "start_page"]

COUNT = 40
"""Events in partition 0; the checkpoint is at the tenth."""


@dataclass(frozen=True)
class Place:
    """Where a group's records are."""

    store: CheckpointStore
    spec: str
    """The value of ``--store``."""

    env: dict[str, str]
    """What the command needs in its environment."""

    @property
    def options(self):
        """The options that name the group."""
        return "--eventhub", "orders", "--store", self.spec


def in_postgres(server):
    """Return a place in a schema of its own."""
    schema = f"s{uuid.uuid4().hex}"
    return Place(
        PostgresCheckpointStore(server.dsn, schema=schema, create_schema=True),
        f"postgres:ORDERS_DSN?schema={schema}",
        {"ORDERS_DSN": server.dsn},
    )


def in_tables(azurite):
    """Return a place in a table of its own."""
    table = f"t{uuid.uuid4().hex}"
    secret = azurite.connection_string
    return Place(
        TableCheckpointStore.from_connection_string(secret, table, create_table=True),
        f"tables:{table}",
        {"EVENTPROC_STORAGE_CONNECTION_STRING": secret},
    )


@pytest.fixture(name="place", params=["postgres", "tables"])
def _place(request, orders):
    """Return the place of a group: one member, which has partition 0."""
    server = request.getfixturevalue(request.param)
    place = in_postgres(server) if request.param == "postgres" else in_tables(server)
    with EventHubProducerClient.from_connection_string(
        orders.connection_string_for("orders")
    ) as producer:
        producer.send_batch([EventData("x")] * COUNT, partition_id="0")
    group = ConsumerGroup(
        fully_qualified_namespace=f"127.0.0.1:{orders.port}", eventhub_name="orders"
    )
    asyncio.run(write(place.store, group))
    return place


async def write(store, group):
    """Write the records of the group."""
    claim = OwnershipClaim(partition_id="0", owner_id="worker-1", expected_etag=None)
    update = CheckpointUpdate(
        partition_id="0", offset="400", sequence_number=9, replaces=None, writer="w", state=b"sum"
    )
    async with store:
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
def test_the_records_are_shown(command, orders, place, words, shown):
    """By ``status``, and by ``checkpoints`` with its lag and state."""
    env = place.env | {"EVENTPROC_CONNECTION_STRING": orders.connection_string}
    code, out, err = command.run(*words, *place.options, "--format", "json", **env)
    found = json.loads(out)
    rows = found.get("partitions") or found["checkpoints"]
    row = next(row for row in rows if row["partition_id"] == "0")

    assert (code, err) == (0, "")
    assert {name: row[name] for name in shown} == shown


@pytest.mark.long
def test_scale_reads_members_and_backlog(command, orders, place):
    """Its line counts the events after the checkpoint, and the member."""
    env = place.env | {"EVENTPROC_CONNECTION_STRING": orders.connection_string}
    code, out, err = command.run("scale", *place.options, "--checkpoint-interval", "1s", **env)
    vote = json.loads(out)

    assert (code, err) == (0, "")
    assert vote["backlog"] == 30


@pytest.mark.long
async def test_the_dashboard_shows_owner_and_lag(start_page, place):
    """``start_page`` names a SQLite file first; the last ``--store`` counts."""
    page = await asyncio.to_thread(start_page, *place.options, **place.env)
    message = json.dumps(await page.first())

    assert "worker-1" in message
    assert re.search(r'"samples": \[\[[\d.]+, 30,', message), "the lag from the checkpoint"


@pytest.mark.long
def test_a_message_shows_the_command_that_creates_the_table(command, tables):
    """It can be typed as it is shown: after it, the command that had failed works."""
    env = {"EVENTPROC_STORAGE_CONNECTION_STRING": tables.connection_string}
    check = "store", "check", f"--store=tables:t{uuid.uuid4().hex}"
    code, _, err = command.run(*check, **env)
    shown = shlex.split(err.split("`")[1])
    codes = [command.run(*words, **env)[0] for words in (shown[1:], check)]

    assert (code, shown[0]) == (2, "eventproc")
    assert codes == [0, 0]
