"""Tests of a handler, without a broker and without waiting.

Run them with ``pytest examples/testing_a_handler.py``, or run this file.
"""

import json
from collections.abc import Sequence
from datetime import timedelta

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.testing import HandlerTestHarness


class Turnover(PartitionHandler):
    """Adds up the amounts of each customer, in its state."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order."""
        totals = json.loads(context.state or b"{}")
        for event in events:
            totals[event.partition_key] = totals.get(event.partition_key, 0) + int(event.body)
        context.state = json.dumps(totals).encode()


def test_amounts_are_added_up() -> None:
    """By the default policy, the state is stored after five seconds."""
    with HandlerTestHarness(Turnover) as harness:
        harness.publish("10", "20", partition_key="Ada")
        harness.publish("5", partition_key="Alan")
        harness.settle()
        harness.assert_handled("10", "20", "5")
        assert harness.state() is None
        harness.advance(timedelta(seconds=5))
        assert harness.state() == b'{"Ada": 30, "Alan": 5}'


def test_no_amount_is_counted_twice_whatever_happens() -> None:
    """Not by a failing call, a crash after the work, a kill, a move or a steal."""
    with HandlerTestHarness(Turnover) as harness:
        harness.fail_call(1)
        harness.crash_call(3)
        for trouble in (harness.kill, harness.move, harness.steal):
            harness.publish("1", partition_key="Ada")
            harness.settle()
            trouble()
        harness.settle()
        harness.assert_nothing_lost()
    assert harness.state() == b'{"Ada": 3}'


if __name__ == "__main__":
    test_amounts_are_added_up()
    test_no_amount_is_counted_twice_whatever_happens()
    print("2 tests of a handler, passed")
