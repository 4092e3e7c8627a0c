"""The page of a group in a process of its own, over real sockets."""

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest
from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.admin import read_pauses
from eventproc.models import CheckpointUpdate, ConsumerGroup, Member, OwnershipClaim
from tests.integration.cli.conftest import command, orders

__all__ = ["command", "orders"]

COUNT = 40
"""Events in partition 0."""

FAST = ("--every", "0.2s", "--expiration", "60s", "--http", "0")


@dataclass
class Page:
    """A page that is served."""

    process: object
    origin: str
    token: str | None

    @asynccontextmanager
    async def stream(self, client):
        """Yield the messages of the page's stream, as JSON."""
        async with client.get(f"{self.origin}/events") as answer:
            yield self._messages(answer)

    async def _messages(self, answer):
        async for line in answer.content:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))

    async def first(self):
        """Return the first message."""
        async with (
            aiohttp.ClientSession(read_bufsize=2**22) as client,
            self.stream(client) as messages,
        ):
            return await anext(messages)

    async def post(self, path, body, **headers):
        """Send a request to change something; return status and JSON."""
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{self.origin}{path}", json=body, headers=headers) as answer,
        ):
            return answer.status, await answer.json()

    async def change(self, path, body):
        """The same as the page does it."""
        return await self.post(path, body, **{"X-Eventproc-Token": self.token})


class Records:
    """The records of the group, written as processors write them."""

    def __init__(self, path, group):
        self._path = path
        self._group = group

    async def write(self, *, owner_id="one", is_ours=True, partitions=("0",), position=9):
        """Write leases and checkpoints of partitions, and a member record if the owner is ours."""
        async with SqliteCheckpointStore(self._path) as store:
            if is_ours:
                await store.announce_member(self._group, Member(owner_id=owner_id, incarnation="1"))
            for partition_id in partitions:
                claim = OwnershipClaim(
                    partition_id=partition_id, owner_id=owner_id, expected_etag=None, epoch=1
                )
                await store.claim_ownership(self._group, [claim])
                await store.update_checkpoint(
                    self._group,
                    CheckpointUpdate(
                        partition_id=partition_id,
                        offset=str(position),
                        sequence_number=position,
                        replaces=None,
                        writer=f"{owner_id}/1/1",
                    ),
                )

    async def take_over(self, partition_id, *, owner_id, former_id):
        """Give a partition to another member; the former one leaves."""
        async with SqliteCheckpointStore(self._path) as store:
            await store.announce_member(self._group, Member(owner_id=owner_id, incarnation="1"))
            held = (await store.list_ownership(self._group)).by_partition[partition_id]
            claim = OwnershipClaim(
                partition_id=partition_id,
                owner_id=owner_id,
                expected_etag=held.etag,
                epoch=held.epoch + 1,
            )
            await store.claim_ownership(self._group, [claim])
            for member in (await store.list_members(self._group)).members:
                if member.owner_id == former_id:
                    await store.withdraw_member(self._group, member)

    async def positions(self):
        """Return the position of each checkpoint."""
        async with SqliteCheckpointStore(self._path) as store:
            found = await store.list_checkpoints(self._group)
            return {c.partition_id: c.sequence_number for c in found}

    async def pauses(self):
        """Return the reason of each partition's pause, and that of the group under its own name."""
        async with SqliteCheckpointStore(self._path) as store:
            found = await read_pauses(store, self._group)
            whole = {} if found.group is None else {"group": found.group.reason}
            return whole | {p: pause.reason for p, pause in found.by_partition.items()}


@pytest.fixture
def records(orders, tmp_path):
    """Yield the records of the group, with events in the hub: in most partitions ten."""
    with EventHubProducerClient.from_connection_string(
        orders.connection_string_for("orders")
    ) as producer:
        for partition_id in "0123":
            count = COUNT if partition_id == "0" else 10
            producer.send_batch([EventData("x")] * count, partition_id=partition_id)
    (tmp_path / "group.db").touch()
    group = ConsumerGroup(
        fully_qualified_namespace=f"127.0.0.1:{orders.port}", eventhub_name="orders"
    )
    return Records(tmp_path / "group.db", group)


@pytest.fixture
def start_page(command, orders):
    """Return a function that starts the page of the group."""

    def start(*options, **env):
        process = command.start(
            "dashboard", "--eventhub", "orders", "--store", "sqlite:group.db", *FAST, *options,
            EVENTPROC_CONNECTION_STRING=orders.connection_string, **env,
        )  # fmt: skip
        line = process.stdout.readline().strip()
        assert line.startswith("http://"), process.stderr.read()
        origin, _, fragment = line.partition("/#")
        return Page(process, origin.rstrip("/"), fragment.removeprefix("token=") or None)

    return start
