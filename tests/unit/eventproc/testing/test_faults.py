"""The faults of a store: the delays of its calls."""

from datetime import timedelta
from random import Random

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import ConfigurationError
from eventproc.testing import FaultyCheckpointStore, StoreFaults


def test_a_delay_lies_between_the_minimum_and_the_maximum():
    """Half of each bound applies to the request, and half to the answer."""
    faults = StoreFaults(delay_min=timedelta(seconds=2), delay_max=timedelta(seconds=6))
    store = FaultyCheckpointStore(MemoryCheckpointStore(), Random(0), faults)
    fates = [store._draw_fate() for _ in range(200)]
    ways_s = [way_s for fate in fates for way_s in (fate.way_there_s, fate.way_back_s)]

    assert 1 <= min(ways_s) < 1.1
    assert 2.9 < max(ways_s) <= 3


def test_a_minimum_delay_above_the_maximum_is_refused():
    """The message names both."""
    with pytest.raises(ConfigurationError, match=r"0:00:02 must not be above delay_max 0:00:01"):
        StoreFaults(delay_min=timedelta(seconds=2), delay_max=timedelta(seconds=1))
