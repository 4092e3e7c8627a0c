"""The harness works with every strategy."""

import pytest

from eventproc import EventProcessorConfig, LoadBalancingStrategy, PartitionHandler
from eventproc.testing import HandlerTestHarness


class Counting(PartitionHandler):
    """Counts events in its state."""

    async def process_event(self, context, event):
        """Count the event."""
        context.state = str(int(context.state or 0) + 1).encode()


@pytest.mark.parametrize("strategy", LoadBalancingStrategy, ids=lambda strategy: strategy.value)
def test_state_counts_each_event_once_through_every_fault(strategy):
    """A crash, a move, a new processor, a steal and a leave."""
    config = EventProcessorConfig(load_balancing_strategy=strategy)
    with HandlerTestHarness(Counting, partition_count=3, config=config) as harness:
        faults = (
            harness.kill,
            harness.move,
            harness.join,
            lambda: harness.steal("1"),
            harness.leave,
        )
        for trouble in faults:
            harness.publish("a", "b", "c")
            harness.settle()
            trouble()
        harness.settle()

        harness.assert_nothing_lost()

    assert [harness.state(p) for p in "012"] == [b"5"] * 3
