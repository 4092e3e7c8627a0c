"""A receiver that begins earlier than it was asked to: what was handled is left out."""

from random import Random

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig
from eventproc.models import EventPosition
from eventproc.sources.memory import MemoryEventSource
from eventproc.testing.virtual_time import run_virtual
from tests.unit.eventproc.scene import Noting, Scene, seconds


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
