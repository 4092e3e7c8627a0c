"""Settings that cannot work raise an error that names the remedy when they are built."""

from datetime import timedelta

import pytest

from eventproc import Backoff, CheckpointPolicy, ConfigurationError, EventProcessorConfig
from eventproc.models import EventPosition

ZERO = timedelta(0)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"load_balancing_interval": ZERO}, "load_balancing_interval"),
        ({"rebalance_interval": -SECOND}, "rebalance_interval"),
        ({"handoff_timeout": ZERO}, "handoff_timeout"),
        ({"shutdown_timeout": ZERO}, "shutdown_timeout"),
        ({"partition_ids_interval": ZERO}, "partition_ids_interval"),
        ({"ownership_expiration": 29 * SECOND}, "at least 3 intervals"),
        ({"rebalance_interval": 11 * SECOND}, "rebalance_interval"),
        ({"batch_size_max": 0}, "batch_size_max"),
    ],
)
def test_a_config_that_cannot_work_is_refused(settings, word):
    """The message names the setting to change."""
    with pytest.raises(ConfigurationError, match=word):
        EventProcessorConfig(**settings)


def test_an_expiration_of_three_load_balancing_intervals_is_enough():
    """So one poll may be missed."""
    config = EventProcessorConfig(ownership_expiration=30 * SECOND)

    assert config.ownership_expiration == 3 * config.load_balancing_interval


@pytest.mark.parametrize(
    "build",
    [
        lambda: CheckpointPolicy(max_events=0),
        lambda: CheckpointPolicy(max_uncommitted_events=0),
        lambda: CheckpointPolicy(interval=ZERO),
        lambda: Backoff(initial=ZERO),
        lambda: Backoff(initial=2 * SECOND, maximum=SECOND),
    ],
)
def test_policies_without_positive_counts_and_durations_are_refused(build):
    """Nor may the initial back-off be longer than the maximum."""
    with pytest.raises(ConfigurationError):
        build()


def test_initial_positions_has_a_position_for_single_partitions():
    """The others begin at ``initial_position``."""
    latest = EventPosition.latest()
    config = EventProcessorConfig(initial_positions={"3": latest})

    assert config.position_without_checkpoint("3") == latest
    assert config.position_without_checkpoint("4").is_earliest


@pytest.mark.parametrize("limit", [None, 100_000])
def test_a_policy_without_automatic_checkpoints_has_none_on_a_queue_either(limit):
    """However it was written."""
    policy = CheckpointPolicy(max_events=None, interval=None, max_uncommitted_events=limit)

    assert policy.within(1000) is policy
