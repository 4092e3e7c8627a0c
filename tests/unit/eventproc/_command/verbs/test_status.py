"""``eventproc status --watch`` on virtual time, with a store and a hub in memory."""

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import timedelta

from checkpointstores.memory import MemoryCheckpointStore
from eventproc._base.tasks import end
from eventproc._command.arguments.address import ShownAddress
from eventproc._command.arguments.options import RowsFormat
from eventproc._command.group.connection import Connection
from eventproc._command.verbs import status as status_module
from eventproc._command.verbs.status import status
from eventproc.models import CheckpointUpdate, OwnershipClaim
from eventproc.sources.memory import MemoryEventSource
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds


def test_a_partition_that_becomes_stuck_while_it_is_watched_is_reported(monkeypatch, capsys):
    """While events come, a single reading cannot tell that from ordinary work."""
    setup = Setup()

    @asynccontextmanager
    async def connect(_):
        store = MemoryCheckpointStore(setup.account)
        async with store, MemoryEventSource(setup.hub) as source:
            yield Connection(group=setup.group, store=store, source=source)

    async def scenario():
        async with MemoryCheckpointStore(setup.account) as store:
            claim = OwnershipClaim(partition_id="0", owner_id="host-1", expected_etag=None)
            await store.claim_ownership(setup.group, [claim])
            update = CheckpointUpdate(
                partition_id="0", offset="1", sequence_number=1, replaces=None, writer="host-1/a/1"
            )
            await store.update_checkpoint(setup.group, update)
        watching = asyncio.ensure_future(
            status(
                address=ShownAddress(store=""),
                expiration=timedelta(hours=1),
                output=RowsFormat.JSON,
                watch=True,
                every=timedelta(seconds=5),
            )
        )
        for _ in range(90):
            setup.publish(1)
            await seconds(1)
        await end([watching])

    monkeypatch.setattr(status_module, "connect", connect)
    run_virtual(scenario())
    found = [
        [finding["kind"] for finding in json.loads(line)["findings"]]
        for line in capsys.readouterr().out.splitlines()
    ]

    assert "no progress" not in found[0]
    assert "no progress" in found[-1]
