"""A receiver that begins earlier than it was asked to: what was handled is left out."""

from random import Random

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig, FailureAction, FailurePolicy
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.models import CheckpointUpdate, EventPosition
from eventproc.sources.memory import MemoryEventSource
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Noting, Scene, seconds


class Early(MemoryEventSource):
    """Begins at the oldest event, whatever it is asked for."""

    async def open_receiver(self, consumer_group, partition_id, position):
        """As a service may that keeps events in larger pieces."""
        return await super().open_receiver(consumer_group, partition_id, EventPosition.earliest())


def test_what_was_handled_is_not_handed_over_again():
    """Neither in part nor as a whole batch."""

    async def story():
        scene = Scene()
        processor = EventProcessor(
            source=Early(scene.hub),
            store=MemoryCheckpointStore(scene.account),
            handler=lambda: Noting(scene),
            owner_id="a",
            config=EventProcessorConfig(uses_store_thread=False, batch_size_max=3),
            rng=Random(1),
        )
        async with processor:
            scene.publish(4)
            await seconds(5)
            scene.hub.break_links()
            scene.publish(2)
            await seconds(20)
        return scene.numbers()

    assert run_virtual(story()) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("settings", [{}, {"key_concurrency": 3}], ids=["in order", "lanes"])
def test_no_handled_event_is_given_up_for_what_processes_died_of(settings):
    """The culprit is the event after the position, and not the first that comes."""

    async def story():
        scene = Scene()
        store = MemoryCheckpointStore(scene.account)
        sink = MemoryDeadLetterSink()
        scene.publish(6)
        died_of = CheckpointUpdate(
            partition_id="0",
            offset="3",
            sequence_number=3,
            replaces=None,
            delivery_count=6,
            writer="a/1/1",
        )
        async with store:
            await store.update_checkpoint(scene.group, died_of)
        processor = EventProcessor(
            source=Early(scene.hub),
            store=store,
            handler=lambda: Noting(scene),
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
        return [letter.event.sequence_number for letter in sink.letters], scene.numbers()

    assert run_virtual(story()) == ([4], [5])
