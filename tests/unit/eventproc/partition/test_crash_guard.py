"""Isolating an event that kills the process: which events are delivered alone."""

from math import inf

import pytest

from eventproc.core.deliveries import ALONE, IN_PART
from eventproc.logs import get_logger
from eventproc.models import LastEnqueued
from eventproc.partition.crash_guard import CrashGuard
from eventproc.partition.scope import PartitionIdentity, PartitionScope
from eventproc.partition.stop_scope import StopScope
from eventproc.statistics import DeliveryCounters
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene
from tests.unit.eventproc.core.events import events, numbers
from tests.unit.eventproc.partition.test_checkpointer import CheckpointFixture


@pytest.mark.parametrize(
    ("last_enqueued", "parts"),
    [
        (3, [[1], [2], [3], [4], [5]]),  # Events arrived since the hub reported its last one.
        (None, [[1], [2], [3], [4], [5]]),
        (9, [[1], [2], [3], [4], [5]]),
    ],
)
def test_every_event_received_at_first_is_delivered_alone(last_enqueued, parts):
    """A dead process may have received each of them, whatever the hub last reported."""

    async def scenario():
        scene = Scene()
        fixture = CheckpointFixture(scene)
        await fixture.store.open()
        checkpointer = fixture.checkpointer("a")
        await checkpointer.adopt()
        checkpointer.progress.pin(0, "o0")
        checkpointer.progress.count_delivery(IN_PART)
        guard = CrashGuard(
            checkpointer,
            scope=PartitionScope(
                identity=PartitionIdentity(partition_id="0", group=scene.group, owner_id="a"),
                stop=StopScope(lambda: inf),
                counters=DeliveryCounters(),
                log=get_logger("eventproc.test"),
            ),
            last_enqueued=lambda: (
                None
                if last_enqueued is None
                else LastEnqueued(sequence_number=last_enqueued, offset="", enqueued_time=None)
            ),
            deliveries_max=5,
        )
        delivered = []
        stored = []

        async def hand(part):
            delivered.append(numbers(part))
            checkpoint = scene.checkpoint()
            assert checkpoint is not None
            stored.append(checkpoint.delivery_count)
            checkpointer.progress.done(part)

        async def give_up(event, delivery_count):
            raise AssertionError((event, delivery_count))

        received = checkpointer.progress.admit(events(range(1, 6)))
        await guard.hand(received, hand, give_up)
        return delivered, stored

    assert run_virtual(scenario()) == (parts, [ALONE] * 5)
