"""Key lanes after a crash: what the completed ranges of the dead owner's checkpoint mean."""

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    CheckpointPolicy,
    FailureAction,
    FailurePolicy,
)
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.models import CheckpointUpdate, SequenceRange, alone
from tests.scenarios.group_setup import Noting, Setup, seconds

LETTER = FailurePolicy(deliveries_max=5, action=FailureAction.DEAD_LETTER)
STOP = FailurePolicy(deliveries_max=5)


async def test_only_an_event_that_is_not_completed_can_be_the_poison_event():
    """Events in the completed ranges are received again, but not counted as delivered."""
    setup = Setup()
    setup.publish(20)
    sink = MemoryDeadLetterSink()
    async with MemoryCheckpointStore(setup.account) as store:
        update = CheckpointUpdate(
            partition_id="0",
            offset="4096",
            sequence_number=0,
            replaces=None,
            writer="dead",
            completed=(SequenceRange(1, 3),),
            isolation=alone(4),
        )
        await store.update_checkpoint(setup.group, update)
    async with setup.processor(sink=sink, failure_policy=LETTER, key_concurrency=3):
        await seconds(30)

    assert ([letter.event.sequence_number for letter in sink.letters], setup.numbers()) == (
        [4],
        list(range(5, 20)),
    )


async def leave(setup: Setup, number: int, *completed: tuple[int, int]) -> None:
    """Leave the checkpoint of a dead owner that had key lanes."""
    async with MemoryCheckpointStore(setup.account) as store:
        update = CheckpointUpdate(
            partition_id="0",
            offset=setup.hub.events("0")[number].offset,
            sequence_number=number,
            replaces=None,
            writer="dead",
            completed=tuple(SequenceRange(*ends) for ends in completed),
        )
        await store.update_checkpoint(setup.group, update)


async def test_a_group_without_key_lanes_continues_from_completed_ranges():
    """It does not handle them again either, and its position and state pass them."""

    class Counting(Noting):
        async def process_events(self, context, events):
            context.state = str(int(context.state or b"0") + len(events)).encode()
            await super().process_events(context, events)

    setup = Setup()
    setup.publish(20)
    await leave(setup, 0, (5, 9), (17, 19))
    policy = CheckpointPolicy(max_events=1)
    async with setup.processor(
        lambda: Counting(setup), checkpoint_policy=policy, batch_size_max=4
    ) as processor:
        await seconds(30)
        error_count = processor.statistics().counters.handler_error_count
        checkpoint, numbers = setup.checkpoint(), setup.numbers()

    assert numbers == [*range(1, 5), *range(10, 17)]
    assert (checkpoint.sequence_number, checkpoint.completed) == (19, ())
    assert (checkpoint.state, checkpoint.state_sequence_number) == (b"11", 19)
    assert error_count == 0


async def test_a_position_that_only_passes_completed_ranges_is_stored():
    """Within the interval of checkpoints, although the new owner has nothing to handle."""
    setup = Setup()
    setup.publish(20)
    await leave(setup, 16, (17, 19))
    async with setup.processor(key_concurrency=3):
        await seconds(10)
        checkpoint, numbers = setup.checkpoint(), setup.numbers()

    assert (checkpoint.sequence_number, checkpoint.completed) == (19, ())
    assert numbers == []
