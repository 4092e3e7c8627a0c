"""The harness works with every strategy and lease mode."""

import pytest

from eventproc import EventProcessorConfig, LeaseMode, LoadBalancingStrategy, PartitionHandler
from eventproc.testing import HandlerTestHarness

CONFIGS = {
    **{
        f"strategy {strategy.value}": EventProcessorConfig(load_balancing_strategy=strategy)
        for strategy in LoadBalancingStrategy
    },
    **{f"leases by {mode.value}": EventProcessorConfig(lease_mode=mode) for mode in LeaseMode},
}


class Counting(PartitionHandler):
    """Counts events in its state."""

    async def process_event(self, context, event):
        """Count the event."""
        context.state = str(int(context.state or 0) + 1).encode()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_state_counts_each_event_once_through_every_fault(config):
    """A crash, a move, a new processor, a steal and a leave."""
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
