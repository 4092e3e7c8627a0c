"""The harness with failure policies, with key lanes, and with handlers that name failed events."""

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
from eventproc.testing import HandlerTestHarness

LETTERS = EventProcessorConfig(
    failure_policy=FailurePolicy(attempts_max=3, action=FailureAction.DEAD_LETTER)
)
LANES = EventProcessorConfig(key_concurrency=4)


class RefusingSome(PartitionHandler):
    """Takes one event at a time, and raises for some."""

    async def process_event(self, context, event):
        """Raise for a bad event."""
        if event.body == b"bad":
            raise ValueError("cannot read this")


def test_events_before_the_failed_one_are_handled():
    """With events one by one: those after it are delivered again."""
    with HandlerTestHarness(RefusingSome, config=LETTERS) as harness:
        harness.publish("one", "bad", "two")
        harness.settle()

        harness.assert_handled("one", "two")
        harness.assert_dead_lettered("bad")
        harness.assert_each_handled_once()
        with pytest.raises(AssertionError, match=r"dead letters were \[b'bad'\], expected \[\]"):
            harness.assert_dead_lettered()

    assert [letter.attempt_count for letter in harness.dead_letters] == [3]
    assert harness.checkpointed() == 2


def test_events_that_a_batch_error_does_not_name_are_handled():
    """Also those after the failed event."""

    class Naming(PartitionHandler):
        has_failed = False

        async def process_events(self, context, events):
            if len(events) == 3:
                raise BatchError([(events[1], ValueError("not now"))])

    with HandlerTestHarness(Naming) as harness:
        harness.publish("one", "two", "three")
        harness.settle()

        harness.assert_handled("one", "three", "two")
        harness.assert_each_handled_once()


def test_settle_fails_for_a_stopped_partition_until_it_is_resumed():
    """The message says why it was stopped."""

    class Broken(RefusingSome):
        is_broken = True

        async def process_event(self, context, event):
            if self.is_broken:
                await super().process_event(context, event)

    config = EventProcessorConfig(failure_policy=FailurePolicy(attempts_max=2))
    with HandlerTestHarness(Broken, config=config) as harness:
        harness.publish("one", "bad", "two")
        with pytest.raises(AssertionError, match="the failure policy stopped partition '0'"):
            harness.settle(timedelta(minutes=1))
        harness.assert_closed(CloseReason.HANDLER_FAILED)
        Broken.is_broken = False
        harness.resume()
        harness.settle()

        harness.assert_handled("one", "bad", "two")


def test_an_event_that_kills_processes_is_given_up():
    """By the delivery count in the checkpoint, which each owner reads."""
    policy = FailurePolicy(deliveries_max=3, action=FailureAction.DEAD_LETTER)
    with HandlerTestHarness(
        RefusingSome, config=EventProcessorConfig(failure_policy=policy)
    ) as harness:
        for number in range(1, 4):
            harness.crash_call(number)
        harness.publish("deadly")
        harness.settle()

        harness.assert_dead_lettered("deadly")
        harness.assert_nothing_lost()

    assert {call.owner_id for call in harness.calls} == {"owner-1", "owner-2", "owner-3"}
    assert harness.handled == ()


@pytest.mark.parametrize("base", [PartitionHandler, BlockingPartitionHandler])
def test_key_lanes_run_in_the_harness(base):
    """Keys concurrently, each in order, through a crash and a move."""
    seen = defaultdict(list)

    class Async(PartitionHandler):
        async def process_events(self, context, events):
            for event in events:
                seen[event.partition_key].append(event.sequence_number)

    class Blocking(BlockingPartitionHandler):
        def process_events(self, context, events):
            for event in events:
                seen[event.partition_key].append(event.sequence_number)

    with HandlerTestHarness(
        Async if base is PartitionHandler else Blocking, config=LANES
    ) as harness:
        for number in range(40):
            harness.publish(f"{number}", partition_key=f"key-{number % 8}")
        harness.crash_call(5)
        harness.settle()
        harness.move()
        harness.publish(*"abc", partition_key="key-0")
        harness.settle()

        harness.assert_nothing_lost()

    for numbers in seen.values():
        assert numbers[-1] == max(numbers)
        firsts = list(dict.fromkeys(numbers))
        assert firsts == sorted(firsts)
    assert len(seen) == 8


def test_an_idle_partition_is_part_of_the_history():
    """``on_idle`` is called."""
    idle = []

    class Idle(RefusingSome):
        async def on_idle(self, context):
            idle.append(context.partition_id)

    config = EventProcessorConfig(idle_timeout=timedelta(seconds=10))
    with HandlerTestHarness(Idle, config=config) as harness:
        harness.advance(timedelta(seconds=25))

    assert idle == ["0", "0"]
    assert harness.history().count("partition 0: idle") == 2


def test_a_dead_letter_has_the_time_of_the_harness():
    """The time when the event was given up, however long the sink was out."""
    settings = FailurePolicy(attempts_max=1, action=FailureAction.DEAD_LETTER)
    with HandlerTestHarness(
        RefusingSome, config=EventProcessorConfig(failure_policy=settings)
    ) as harness:
        harness.dead_letter_sink.is_out = True
        published_at = harness.now
        harness.publish(b"bad")
        harness.advance(timedelta(minutes=2))
        harness.dead_letter_sink.is_out = False
        harness.settle()
        (letter,) = harness.dead_letters

    assert timedelta(0) <= letter.given_up_at - published_at < timedelta(seconds=5)
