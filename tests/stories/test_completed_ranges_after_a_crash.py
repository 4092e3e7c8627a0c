"""Key lanes after a crash: what the completed ranges of the dead owner's checkpoint mean."""

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import FailureAction, FailurePolicy
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.models import CheckpointUpdate, SequenceRange
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene, seconds

LETTER = FailurePolicy(deliveries_max=5, action=FailureAction.DEAD_LETTER)
STOP = FailurePolicy(deliveries_max=5)


def test_only_an_event_that_is_not_completed_can_be_the_poison_event():
    """Events in the completed ranges are received again, but not counted as delivered."""

    async def scenario():
        scene = Scene()
        scene.publish(20)
        sink = MemoryDeadLetterSink()
        async with MemoryCheckpointStore(scene.account) as store:
            update = CheckpointUpdate(
                partition_id="0",
                offset="4096",
                sequence_number=0,
                replaces=None,
                writer="dead",
                completed=(SequenceRange(1, 3),),
                delivery_count=6,
            )
            await store.update_checkpoint(scene.group, update)
        async with scene.processor(sink=sink, failure_policy=LETTER, key_concurrency=3):
            await seconds(30)
        return [letter.event.sequence_number for letter in sink.letters], scene.numbers()

    assert run_virtual(scenario()) == ([4], list(range(5, 20)))


def test_events_completed_at_the_end_by_a_dead_owner_move_the_position():
    """The position reaches the last event, although only the events below them are handled."""

    async def scenario():
        scene = Scene()
        scene.publish(20)
        async with MemoryCheckpointStore(scene.account) as store:
            update = CheckpointUpdate(
                partition_id="0",
                offset="4096",
                sequence_number=0,
                replaces=None,
                writer="dead",
                completed=(SequenceRange(17, 19),),
                delivery_count=1,
            )
            await store.update_checkpoint(scene.group, update)
        async with scene.processor(failure_policy=STOP, key_concurrency=3):
            await seconds(30)
            return scene.checkpoint(), scene.numbers()

    checkpoint, numbers = run_virtual(scenario())

    assert checkpoint is not None
    assert (checkpoint.sequence_number, checkpoint.completed) == (19, ())
    assert numbers == list(range(1, 17))
