"""Changes that are confirmed on the page, on virtual time."""

import asyncio
from datetime import timedelta
from http import HTTPStatus

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc._base.tasks import end
from eventproc._command.dashboard.changes import Changes, PendingChanges
from eventproc._command.dashboard.guard import RefusedError
from eventproc._command.group.connection import Connection
from eventproc.sources.memory import MemoryEventSource
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds


class SlowStore(MemoryCheckpointStore):
    """Writes the checkpoint of partition 1 later than that of partition 0."""

    async def update_checkpoint(self, group, update):
        """Wait first."""
        await seconds(1 + 10 * int(update.partition_id))
        return await super().update_checkpoint(group, update)


def test_a_confirmed_change_is_made_whole_although_the_browser_goes_away():
    """Whoever closes the page cancels the request; a part of the checkpoints would be moved."""

    async def scenario():
        setup = Setup(2)
        for partition_id in "01":
            setup.publish(5, partition_id)
        async with SlowStore(setup.account) as store, MemoryEventSource(setup.hub) as source:
            connection = Connection(group=setup.group, store=store, source=source)
            pending = PendingChanges(
                Changes(connection=connection, expiration=timedelta(seconds=60), lookup_group="")
            )
            plan = await pending.plan({"action": "reset", "to": "latest", "partitions": ["0", "1"]})
            request = asyncio.ensure_future(pending.confirm({"id": plan["id"]}))
            await seconds(5)
            await end([request])
            at_end = [setup.checkpointed(partition_id) for partition_id in "01"]
            await seconds(30)
            return at_end, [setup.checkpointed(partition_id) for partition_id in "01"]

    assert run_virtual(scenario()) == ([4, None], [4, 4])


def test_a_change_that_is_confirmed_twice_is_made_once():
    """Owners have gone on meanwhile: a second move would set them back, and repeat events."""

    async def scenario():
        setup = Setup()
        setup.publish(5)
        async with (
            MemoryCheckpointStore(setup.account) as store,
            MemoryEventSource(setup.hub) as source,
        ):
            connection = Connection(group=setup.group, store=store, source=source)
            pending = PendingChanges(
                Changes(connection=connection, expiration=timedelta(seconds=60), lookup_group="")
            )
            plan = await pending.plan({"action": "reset", "to": "latest", "partitions": ["0"]})
            await pending.confirm({"id": plan["id"]})
            moved = setup.checkpointed()
            setup.publish(3)
            async with setup.processor():
                await seconds(30)
            with pytest.raises(RefusedError, match="made already") as refused:
                await pending.confirm({"id": plan["id"]})
            return moved, refused.value.status, setup.checkpointed()

    assert run_virtual(scenario()) == (4, HTTPStatus.GONE, 7)
