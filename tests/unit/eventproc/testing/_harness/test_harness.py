"""The harness for users' tests: what it can make happen, and what it shows."""

import asyncio
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from eventproc import (
    BlockingPartitionHandler,
    CheckpointPolicy,
    CloseReason,
    EventPosition,
    EventProcessorConfig,
    PartitionHandler,
)
from eventproc.testing import DeadlockError, HandlerTestHarness

MANUAL = EventProcessorConfig(checkpoint_policy=CheckpointPolicy.manual())


class Counting(PartitionHandler):
    """Counts events in its state."""

    async def process_events(self, context, events):
        context.state = str(int(context.state or 0) + len(events)).encode()


class Slow(PartitionHandler):
    """Takes a second for each event, in a task of its own, and records finished events."""

    done: list[bytes]

    def __init__(self):
        type(self).done = getattr(type(self), "done", [])

    async def process_events(self, context, events):
        async def work(event):
            await asyncio.sleep(1)
            self.done.append(event.body)

        for event in events:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(work(event))


class Blocking(BlockingPartitionHandler):
    """Blocks for a moment of real time, and checkpoints each event."""

    def process_events(self, context, events):
        for event in events:
            time.sleep(0.002)
            context.state = str(int(context.state or 0) + 1).encode()
            context.checkpoint(event)


def test_events_are_handled_and_checkpointed_by_the_policy():
    """Time passes only in the harness's methods."""
    with HandlerTestHarness(Counting) as harness:
        published = harness.publish("one", b"two")
        before = harness.handled
        harness.settle()
        at_once = harness.checkpointed()
        harness.advance(timedelta(seconds=5))
        later = harness.checkpointed()

        harness.assert_handled("one", "two")
        harness.assert_each_handled_once()
        harness.assert_checkpointed()

    assert (before, at_once, later) == ((), None, 1)
    assert harness.handled == published
    assert harness.state() == b"2"
    harness.assert_closed(CloseReason.SHUTDOWN)


def test_a_failed_call_is_repeated_with_the_same_events():
    """After a wait. The handler need not raise by itself."""
    with HandlerTestHarness(Counting) as harness:
        harness.fail_call(2, ValueError("bad day"))
        harness.publish("one")
        harness.settle()
        harness.publish("two")
        harness.settle()

        harness.assert_each_handled_once()

    assert [repr(call.error) for call in harness.calls] == ["None", "ValueError('bad day')", "None"]
    assert harness.calls[1].events == harness.calls[2].events
    assert harness.state() == b"2"


def test_a_call_that_fails_after_its_work_has_its_effects_twice():
    """Its state counts the event once."""
    effects: list[bytes] = []

    class WithEffects(Counting):
        async def process_events(self, context, events):
            await super().process_events(context, events)
            effects.extend(event.body for event in events)

    with HandlerTestHarness(WithEffects) as harness:
        harness.fail_call(is_after_work=True)
        harness.publish("one")
        harness.settle()

    assert effects == [b"one", b"one"]
    assert harness.state() == b"1"


def test_events_checkpointed_in_a_failed_call_are_not_delivered_again():
    """The next call has only the events after the checkpoint."""

    class Halfway(PartitionHandler):
        has_failed = False

        async def process_events(self, context, events):
            if not Halfway.has_failed:
                Halfway.has_failed = True
                await context.checkpoint(events[0])
                raise RuntimeError("half-way")

    with HandlerTestHarness(Halfway) as harness:
        harness.publish("one", "two")
        harness.settle()

        harness.assert_each_handled_once()

    assert [len(call.events) for call in harness.calls] == [2, 1]


def test_after_a_crash_the_events_are_delivered_to_another_owner():
    """The state counts them once."""
    with HandlerTestHarness(Counting) as harness:
        harness.publish("one")
        harness.settle()
        harness.advance(timedelta(seconds=10))
        harness.crash_call()
        harness.publish("two")
        harness.settle()
        harness.advance(timedelta(seconds=10))

        harness.assert_each_handled_once()

    assert [call.owner_id for call in harness.calls] == ["owner-1", "owner-1", "owner-2"]
    assert [call.is_over for call in harness.calls] == [True, False, True]
    assert harness.state() == b"2"
    assert [closing.owner_id for closing in harness.closings] == ["owner-2"]


def test_a_killed_owner_does_nothing_more():
    """Tasks that its handler started stop, too, and do not run when the harness ends."""
    Slow.done = []
    with HandlerTestHarness(Slow) as harness:
        harness.publish("one", "two")
        harness.advance(timedelta(seconds=1.5))
        harness.kill()
        harness.settle()
        done = list(Slow.done)

    assert done == Slow.done == [b"one", b"one", b"two"]
    assert [call.owner_id for call in harness.calls] == ["owner-1", "owner-2"]


def test_a_killed_owner_stores_nothing():
    """Not even when it is cleaned up at the end of the harness."""
    with HandlerTestHarness(Counting) as harness:
        harness.publish("one")
        harness.settle()
        harness.kill()

    assert (harness.checkpointed(), harness.closings) == (None, ())


def test_a_frozen_owner_is_fenced_when_it_resumes():
    """Its call is cancelled, and its handler is closed with ``OWNERSHIP_LOST``."""
    with HandlerTestHarness(Slow, config=MANUAL) as harness:
        harness.join()
        harness.publish("one")
        harness.advance(timedelta(seconds=0.5))
        frozen = harness.freeze()
        harness.settle()
        harness.thaw(frozen)
        harness.advance(timedelta(seconds=30))

    assert [call.owner_id for call in harness.calls] == ["owner-1", "owner-2"]
    assert isinstance(harness.calls[0].error, asyncio.CancelledError)
    assert [c.reason for c in harness.closings if c.owner_id == frozen] == [
        CloseReason.OWNERSHIP_LOST
    ]


def test_a_move_repeats_no_events():
    """The former owner stops in an orderly way, and the new one has the state."""
    with HandlerTestHarness(Counting, config=MANUAL) as harness:
        first = harness.handler()
        harness.publish("one")
        harness.settle()
        joined = harness.move()
        harness.publish("two")
        harness.settle()

        harness.assert_each_handled_once()
        harness.assert_closed(CloseReason.SHUTDOWN)

        assert harness.owner_of() == joined == "owner-2"
        assert harness.handler() is not first
        assert isinstance(harness.handler(), Counting)
    assert harness.state() == b"2"


def test_a_steal_repeats_events_that_were_not_checkpointed():
    """The former handler is closed with ``OWNERSHIP_LOST``."""
    with HandlerTestHarness(Counting, config=MANUAL) as harness:
        harness.publish("one")
        harness.settle()
        new_owner = harness.steal()
        harness.publish("two")
        harness.settle()
        harness.advance(timedelta(seconds=30))

        harness.assert_nothing_lost()
        harness.assert_closed(CloseReason.OWNERSHIP_LOST)
        with pytest.raises(AssertionError, match="more than once: event 0 of partition '0'"):
            harness.assert_each_handled_once()

        assert harness.owner_of() == new_owner


def test_a_processor_that_joins_gets_its_share_handed_over():
    """No events are repeated, and handlers are closed with ``HANDED_OVER``."""
    with HandlerTestHarness(Counting, partition_count=4, config=MANUAL) as harness:
        harness.publish(*"abcdefgh")
        harness.settle()
        joined = harness.join()
        harness.advance(timedelta(seconds=30))
        harness.publish(*"ijkl")
        harness.settle()

        harness.assert_each_handled_once()

        owned = Counter(harness.owner_of(p) for p in "0123")
        assert owned == {"owner-1": 2, joined: 2}
        assert {closing.reason for closing in harness.closings} == {CloseReason.HANDED_OVER}


def test_events_handled_during_an_outage_of_the_store_are_checkpointed_after_it():
    """Each is handled once."""
    with HandlerTestHarness(Counting) as harness:
        harness.publish("one")
        harness.settle()
        with harness.store_outage():
            harness.publish("two")
            harness.advance(timedelta(seconds=20))
            during = harness.checkpointed()
        harness.advance(timedelta(seconds=20))

        harness.assert_checkpointed()
        harness.assert_each_handled_once()

    assert during is None


def test_events_published_during_an_outage_of_the_hub_are_handled_after_it():
    """Receivers are opened again."""
    with HandlerTestHarness(Counting) as harness:
        with harness.hub_outage():
            harness.publish("one")
            harness.advance(timedelta(seconds=3))
            during = harness.handled
        harness.settle()

        harness.assert_handled("one")

    assert during == ()


def test_enqueued_times_and_properties_are_those_given():
    """As a publisher and the hub would have set them."""
    seen: list[object] = []

    class Inspecting(PartitionHandler):
        async def process_events(self, context, events):
            seen.extend((e.enqueued_time, e.partition_key, dict(e.properties)) for e in events)

    with HandlerTestHarness(Inspecting, config=EventProcessorConfig()) as harness:
        old = harness.now - timedelta(days=1)
        harness.publish("one", enqueued_time=old, partition_key="k", properties={"p": 1})
        published_at = harness.now
        harness.publish("two")
        harness.settle()

    assert seen == [(old, "k", {"p": 1}), (published_at, None, {})]


def test_events_before_the_initial_position_are_not_expected():
    """``settle`` and the assertions know where the group begins."""
    begin = datetime(2026, 11, 21, tzinfo=UTC)
    config = EventProcessorConfig(initial_position=EventPosition.from_enqueued_time(begin))
    harness = HandlerTestHarness(Counting, config=config, begin=begin)
    harness.publish("old", enqueued_time=begin - timedelta(hours=1))
    with harness:
        harness.settle()
        harness.publish("new")
        harness.settle()

        harness.assert_handled("new")
        harness.assert_each_handled_once()


def test_a_blocking_handler_runs_while_the_clock_stands_still():
    """In a thread, in real time; waiting for a checkpoint lets the clock run."""
    with HandlerTestHarness(Blocking, partition_count=2) as harness:
        harness.publish(*"abcdef")
        harness.settle()
        took = harness.now - harness.calls[0].began_at
        with harness.store_outage():
            harness.publish("g", partition_id="0")
            harness.advance(timedelta(seconds=10))
            during = harness.state("0")
        harness.settle()

        harness.assert_each_handled_once()
        harness.assert_checkpointed()

    assert took < timedelta(seconds=1)
    assert (during, harness.state("0"), harness.state("1")) == (b"3", b"4", b"3")
    assert isinstance(harness.handler(), Blocking)


def test_a_blocking_handler_may_be_crashed_at_the_end_of_its_call():
    """No thread of the processor is left behind."""
    before = set(threading.enumerate())
    with HandlerTestHarness(Blocking, config=MANUAL) as harness:
        harness.crash_call()
        harness.publish("one")
        harness.settle()
        harness.publish("two")
        harness.settle()
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive()

    assert [call.owner_id for call in harness.calls] == ["owner-1", "owner-2"]
    assert harness.state() == b"2"


def test_a_handler_thread_that_does_not_return_is_reported(monkeypatch):
    """It would stop the clock for ever."""
    release = threading.Event()

    class Stuck(BlockingPartitionHandler):
        def process_events(self, context, events):
            release.wait(20)

    with HandlerTestHarness(Stuck) as harness:
        harness.publish("one")
        # Only here: on a busy machine other threads may take long.
        with monkeypatch.context() as patch:
            patch.setattr("eventproc.testing._virtual_time.THREAD_WAIT_MAX_S", 0.05)
            with pytest.raises(DeadlockError, match="a thread has not come back"):
                harness.settle()
        release.set()


async def test_the_harness_works_inside_a_running_event_loop():
    """In a thread of its own, for tests that are coroutines."""
    with HandlerTestHarness(Counting) as harness:
        harness.publish("one")
        harness.settle()
        harness.kill()
        harness.settle()

        harness.assert_nothing_lost()

    assert harness.owner_ids == ()


def test_one_handler_instance_may_be_used_in_several_harnesses():
    """A factory may return the same one again and again."""
    handler = Counting()
    for _ in range(2):
        with HandlerTestHarness(lambda: handler, partition_count=2) as harness:
            harness.publish("a", "b")
            harness.settle()

            harness.assert_each_handled_once()
