"""The stage under a failure policy, with key lanes, and with handlers that say which event."""

from collections import defaultdict
from datetime import timedelta

import pytest

from eventproc import (
    BatchError,
    BlockingPartitionHandler,
    CloseReason,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    PartitionHandler,
)
from eventproc.testing import HandlerStage

LETTERS = EventProcessorConfig(
    failure_policy=FailurePolicy(attempts_max=3, then=FailureAction.DEAD_LETTER)
)
LANES = EventProcessorConfig(key_lanes=4)


class Picky(PartitionHandler):
    """Handles one event at a time, and cannot stand some."""

    async def process_event(self, context, event):
        """Refuse what is bad."""
        if event.body == b"bad":
            raise ValueError("cannot read this")


def test_what_a_failed_call_got_done_is_handled():
    """Event by event: those before the bad one are done, those after it come again."""
    with HandlerStage(Picky, config=LETTERS) as stage:
        stage.publish("one", "bad", "two")
        stage.settle()

        stage.assert_handled("one", "two")
        stage.assert_dead_lettered("bad")
        stage.assert_each_handled_once()
        with pytest.raises(AssertionError, match=r"dead letters were \[b'bad'\], expected \[\]"):
            stage.assert_dead_lettered()

    assert [letter.attempt_count for letter in stage.dead_letters] == [3]
    assert stage.checkpointed() == 2


def test_what_a_batch_error_does_not_name_is_handled():
    """Also behind the event that failed."""

    class Naming(PartitionHandler):
        has_failed = False

        async def process_events(self, context, events):
            if len(events) == 3:
                raise BatchError([(events[1], ValueError("not now"))])

    with HandlerStage(Naming) as stage:
        stage.publish("one", "two", "three")
        stage.settle()

        stage.assert_handled("one", "three", "two")
        stage.assert_each_handled_once()


def test_a_partition_that_was_stopped_does_not_settle_until_it_is_resumed():
    """The message says who stopped it."""

    class Broken(Picky):
        is_broken = True

        async def process_event(self, context, event):
            if self.is_broken:
                await super().process_event(context, event)

    config = EventProcessorConfig(failure_policy=FailurePolicy(attempts_max=2))
    with HandlerStage(Broken, config=config) as stage:
        stage.publish("one", "bad", "two")
        with pytest.raises(AssertionError, match="the failure policy stopped partition '0'"):
            stage.settle(timedelta(minutes=1))
        stage.assert_closed(CloseReason.HANDLER_FAILED)
        Broken.is_broken = False
        stage.resume()
        stage.settle()

        stage.assert_handled("one", "bad", "two")


def test_an_event_that_kills_processes_is_given_up():
    """By the count that is kept with the checkpoint: each owner knows of the ones before it."""
    policy = FailurePolicy(deliveries_max=3, then=FailureAction.DEAD_LETTER)
    with HandlerStage(Picky, config=EventProcessorConfig(failure_policy=policy)) as stage:
        for number in range(1, 4):
            stage.crash_call(number)
        stage.publish("deadly")
        stage.settle()

        stage.assert_dead_lettered("deadly")
        stage.assert_nothing_lost()

    assert {call.owner_id for call in stage.calls} == {"owner-1", "owner-2", "owner-3"}
    assert stage.handled == ()


@pytest.mark.parametrize("base", [PartitionHandler, BlockingPartitionHandler])
def test_key_lanes_play_on_a_stage(base):
    """Keys side by side, each in order, through a crash and a move."""
    seen = defaultdict(list)

    class Async(PartitionHandler):
        async def process_events(self, context, events):
            for event in events:
                seen[event.partition_key].append(event.sequence_number)

    class Blocking(BlockingPartitionHandler):
        def process_events(self, context, events):
            for event in events:
                seen[event.partition_key].append(event.sequence_number)

    with HandlerStage(Async if base is PartitionHandler else Blocking, config=LANES) as stage:
        for number in range(40):
            stage.publish(f"{number}", partition_key=f"key-{number % 8}")
        stage.crash_call(5)
        stage.settle()
        stage.move()
        stage.publish(*"abc", partition_key="key-0")
        stage.settle()

        stage.assert_nothing_lost()

    for numbers in seen.values():
        assert numbers[-1] == max(numbers)
        firsts = list(dict.fromkeys(numbers))
        assert firsts == sorted(firsts)
    assert len(seen) == 8


def test_idleness_is_part_of_the_story():
    """And the handler is told of it."""
    idle = []

    class Idle(Picky):
        async def process_idle(self, context):
            idle.append(context.partition_id)

    config = EventProcessorConfig(idle_after=timedelta(seconds=10))
    with HandlerStage(Idle, config=config) as stage:
        stage.advance(timedelta(seconds=25))

    assert idle == ["0", "0"]
    assert stage.story().count("partition 0: idle") == 2
