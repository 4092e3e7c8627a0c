"""Key lanes after a crash: what the completed ranges of the dead owner's checkpoint mean."""

import asyncio
from random import Random

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    CheckpointPolicy,
    EventProcessor,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
)
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.models import IN_BATCH, CheckpointUpdate, SequenceRange, alone
from eventproc.sources.memory import MemoryEventSource
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


async def test_events_completed_at_the_end_by_a_dead_owner_move_the_position():
    """The position reaches the last event, although only the events below them are handled."""
    setup = Setup()
    setup.publish(20)
    async with MemoryCheckpointStore(setup.account) as store:
        update = CheckpointUpdate(
            partition_id="0",
            offset="4096",
            sequence_number=0,
            replaces=None,
            writer="dead",
            completed=(SequenceRange(17, 19),),
            isolation=IN_BATCH,
        )
        await store.update_checkpoint(setup.group, update)
    async with setup.processor(failure_policy=STOP, key_concurrency=3):
        await seconds(30)
        checkpoint, numbers = setup.checkpoint(), setup.numbers()

    assert checkpoint is not None
    assert (checkpoint.sequence_number, checkpoint.completed) == (19, ())
    assert numbers == list(range(1, 17))


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


async def test_completed_events_above_a_slow_one_fill_the_window():
    """The pump waits until that has room, and never asks its receiver for no events at all."""
    asked: list[int] = []

    class Source(MemoryEventSource):
        async def open_receiver(self, consumer_group, partition_id, position):
            receiver = await super().open_receiver(consumer_group, partition_id, position)
            receive = receiver.receive

            async def recorded(*, events_max, wait_max):
                asked.append(events_max)
                return await receive(events_max=events_max, wait_max=wait_max)

            receiver.receive = recorded  # type: ignore[method-assign]
            return receiver

    class Slow(Noting):
        async def process_events(self, context, events):
            await asyncio.sleep(10)
            await super().process_events(context, events)

    setup = Setup()
    setup.publish(20)
    await leave(setup, 0, (2, 18))
    processor = EventProcessor(
        source=Source(setup.hub),
        store=MemoryCheckpointStore(setup.account),
        handler=lambda: Slow(setup),
        config=EventProcessorConfig(
            uses_store_thread=False, key_concurrency=2, max_in_flight_events=6, batch_size_max=3
        ),
        rng=Random(1),
    )
    async with processor:
        await seconds(60)

    assert (setup.numbers(), setup.checkpointed()) == ([1, 19], 19)
    assert min(asked) > 0
