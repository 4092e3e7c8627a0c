"""A receiver that begins earlier than requested: events that were handled are left out."""

from random import Random

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig, FailureAction, FailurePolicy
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.models import CheckpointUpdate, EventPosition, alone
from eventproc.sources.memory import MemoryEventSource
from tests.scenarios.group_setup import Noting, Setup, seconds


class BeginningEarly(MemoryEventSource):
    """Begins at the oldest event, whichever is requested."""

    async def open_receiver(self, consumer_group, partition_id, position):
        """Open a receiver as a service may that stores events in large pieces."""
        return await super().open_receiver(consumer_group, partition_id, EventPosition.earliest())


async def test_events_before_the_checkpoint_are_not_delivered():
    """Neither in a part of a batch nor in a whole one."""
    setup = Setup()
    processor = EventProcessor(
        source=BeginningEarly(setup.hub),
        store=MemoryCheckpointStore(setup.account),
        handler=lambda: Noting(setup),
        owner_id="a",
        config=EventProcessorConfig(uses_store_thread=False, batch_size_max=3),
        rng=Random(1),
    )
    async with processor:
        setup.publish(4)
        await seconds(5)
        setup.hub.break_links()
        setup.publish(2)
        await seconds(20)

    assert setup.numbers() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("settings", [{}, {"key_concurrency": 3}], ids=["in order", "lanes"])
async def test_no_handled_event_is_given_up_as_the_poison_event(settings):
    """The poison event is the one after the position, not the first that is received."""
    setup = Setup()
    store = MemoryCheckpointStore(setup.account)
    sink = MemoryDeadLetterSink()
    setup.publish(6)
    died_of = CheckpointUpdate(
        partition_id="0",
        offset="3",
        sequence_number=3,
        replaces=None,
        isolation=alone(4),
        writer="a/1/1",
    )
    async with store:
        await store.update_checkpoint(setup.group, died_of)
    processor = EventProcessor(
        source=BeginningEarly(setup.hub),
        store=store,
        handler=lambda: Noting(setup),
        dead_letters=sink,
        owner_id="a",
        config=EventProcessorConfig(
            uses_store_thread=False,
            failure_policy=FailurePolicy(deliveries_max=5, action=FailureAction.DEAD_LETTER),
            **settings,
        ),
        rng=Random(1),
    )
    async with processor:
        await seconds(20)

    assert ([letter.event.sequence_number for letter in sink.letters], setup.numbers()) == (
        [4],
        [5],
    )
