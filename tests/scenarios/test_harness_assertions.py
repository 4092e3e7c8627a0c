"""Failing assertions of the harness: the message has the expected, the actual, and the history."""

from datetime import timedelta

import pytest

from eventproc import CloseReason, PartitionHandler
from eventproc.testing import HandlerTestHarness
from tests.unit.eventproc.testing._harness.test_harness import MANUAL, Counting


def test_settle_fails_if_the_handler_always_fails():
    """The message says how far it got and why; the handler's error is the cause."""

    class Broken(PartitionHandler):
        async def process_events(self, context, events):
            raise KeyError("no such order")

    with HandlerTestHarness(Broken) as harness:
        harness.publish("one", "two")
        with pytest.raises(AssertionError) as caught:
            harness.settle(within=timedelta(seconds=30))

    message = str(caught.value)
    assert message.startswith(
        "not settled after 0:00:30: partition '0': none of its events is handled"
    )
    assert "owner-1  partition 0: call 1: 2 events, 0 to 1" in message
    assert "owner-1  partition 0: call 1: failed: KeyError('no such order')" in message
    assert isinstance(caught.value.__cause__, KeyError)


def test_settle_fails_if_initialize_always_fails():
    """The partition is not served."""

    class Unready(Counting):
        async def initialize(self, context):
            raise OSError("no database")

    with HandlerTestHarness(Unready) as harness:
        with pytest.raises(
            AssertionError, match="its owner does not serve partition '0'"
        ) as caught:
            harness.settle(within=timedelta(seconds=5))

    assert "initialize failed: OSError('no database')" in str(caught.value)


def test_each_assertion_has_the_expected_and_the_actual():
    """In words that fit the assertion."""
    with HandlerTestHarness(Counting, config=MANUAL) as harness:
        harness.publish("one")
        with pytest.raises(AssertionError, match="never handled: event 0 of partition '0'"):
            harness.assert_nothing_lost()
        harness.settle()
        with pytest.raises(AssertionError, match=r"handled were \[b'one'\], expected \[b'two'\]"):
            harness.assert_handled("two")
        with pytest.raises(AssertionError, match="up to 0, but its checkpoint says None"):
            harness.assert_checkpointed()
        with pytest.raises(AssertionError, match="no handler of partition '0' was closed"):
            harness.assert_closed(CloseReason.SHUTDOWN)
        harness.move()
        with pytest.raises(AssertionError, match="because of 'shutdown', expected 'stalled'"):
            harness.assert_closed(CloseReason.STALLED)


def test_impossible_faults_are_refused():
    """A fault of a call that was made already, or of an owner that does not exist."""
    with HandlerTestHarness(Counting) as harness:
        harness.publish("one")
        harness.settle()
        with pytest.raises(ValueError, match="call 1 was made already"):
            harness.fail_call(1)
        with pytest.raises(AssertionError, match="there is no owner nobody"):
            harness.kill("nobody")


def test_invalid_arguments_of_the_harness_are_refused_with_a_message():
    """For example a partition that does not exist, or time that goes back."""
    with HandlerTestHarness(Counting) as harness:
        with pytest.raises(AssertionError, match="there is no partition 9"):
            harness.steal("9")
        with pytest.raises(AssertionError, match="there is no frozen owner owner-1"):
            harness.thaw("owner-1")
        with pytest.raises(ValueError, match="time cannot go back by 0:00:01"):
            harness.advance(timedelta(seconds=-1))
