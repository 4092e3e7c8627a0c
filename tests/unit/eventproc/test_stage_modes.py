"""The stage plays whatever the configuration says: each strategy, and each way to keep leases."""

import pytest

from eventproc import EventProcessorConfig, LeaseMode, LoadBalancingStrategy, PartitionHandler
from eventproc.testing import HandlerStage

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
        """Count it."""
        context.state = str(int(context.state or 0) + 1).encode()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_every_trouble_leaves_the_count_exact(config):
    """A crash, a move, a newcomer, a theft, a leave."""
    with HandlerStage(Counting, partition_count=3, config=config) as stage:
        troubles = (stage.kill, stage.move, stage.join, lambda: stage.steal("1"), stage.leave)
        for trouble in troubles:
            stage.publish("a", "b", "c")
            stage.settle()
            trouble()
        stage.settle()

        stage.assert_nothing_lost()

    assert [stage.state(p) for p in "012"] == [b"5"] * 3
