"""Tests of a handler, without a broker and without waiting.

``pytest examples/testing_a_handler.py`` runs them, and so does this file: they are functions.
"""

import json
from collections.abc import Sequence
from datetime import timedelta

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.testing import HandlerStage


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
    """The state is stored five seconds later, by the default policy."""
    with HandlerStage(Turnover) as stage:
        stage.publish("10", "20", partition_key="Ada")
        stage.publish("5", partition_key="Alan")
        stage.settle()
        stage.assert_handled("10", "20", "5")
        assert stage.state() is None
        stage.advance(timedelta(seconds=5))
        assert stage.state() == b'{"Ada": 30, "Alan": 5}'


def test_no_amount_is_counted_twice_whatever_happens() -> None:
    """A failing call, a crash after the work, a move to another process, a theft."""
    with HandlerStage(Turnover) as stage:
        stage.fail_call(1)
        stage.crash_call(3)
        for trouble in (stage.kill, stage.move, stage.steal):
            stage.publish("1", partition_key="Ada")
            stage.settle()
            trouble()
        stage.settle()
        stage.assert_nothing_lost()
    assert stage.state() == b'{"Ada": 3}'


if __name__ == "__main__":
    test_amounts_are_added_up()
    test_no_amount_is_counted_twice_whatever_happens()
    print("2 tests of a handler, passed")
