"""What cannot work is refused when it is built, with the remedy."""

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
        ({"unsettled_interval": -SECOND}, "unsettled_interval"),
        ({"handoff_timeout": ZERO}, "handoff_timeout"),
        ({"shutdown_timeout": ZERO}, "shutdown_timeout"),
        ({"partition_ids_interval": ZERO}, "partition_ids_interval"),
        ({"ownership_expiration": 29 * SECOND}, "at least 3 times"),
        ({"unsettled_interval": 11 * SECOND}, "unsettled_interval"),
        ({"batch_size_max": 0}, "batch_size_max"),
    ],
)
def test_a_config_that_cannot_work_is_refused(settings, word):
    """The message names what to change."""
    with pytest.raises(ConfigurationError, match=word):
        EventProcessorConfig(**settings)


def test_an_expiration_of_three_intervals_is_enough():
    """One look may be missed."""
    config = EventProcessorConfig(ownership_expiration=30 * SECOND)

    assert config.ownership_expiration == 3 * config.load_balancing_interval


@pytest.mark.parametrize(
    "build",
    [
        lambda: CheckpointPolicy(every_events=0),
        lambda: CheckpointPolicy(unwritten_events_max=0),
        lambda: CheckpointPolicy(every=ZERO),
        lambda: Backoff(first=ZERO),
        lambda: Backoff(first=2 * SECOND, most=SECOND),
    ],
)
def test_policies_that_would_never_or_always_act_are_refused(build):
    """A wait is positive, a count at least one."""
    with pytest.raises(ConfigurationError):
        build()


def test_a_partition_may_begin_elsewhere_than_the_others():
    """By its id; the others begin where the config says."""
    latest = EventPosition.latest()
    config = EventProcessorConfig(initial_positions={"3": latest})

    assert config.position_without_checkpoint("3") == latest
    assert config.position_without_checkpoint("4").is_earliest
