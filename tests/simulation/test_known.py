"""Stories that once broke a promise, or nearly: told again with everything that was drawn."""

from datetime import timedelta

import pytest

from eventproc import EventProcessorConfig, LoadBalancingStrategy
from eventproc.membership import LeaseMode
from eventproc.testing import StoreFaults
from eventproc.testing.processes import run_processes
from tests.simulation.faults import Fault
from tests.simulation.stories import Mode, Story, tell


def config(**settings):
    """An ordinary one, on virtual time."""
    return EventProcessorConfig(uses_store_thread=False, **settings)


def fault(at_s, kind, which=0, duration_s=1.0):
    """One thing that goes wrong."""
    return Fault(at_s=at_s, kind=kind, which=which, duration_s=duration_s)


STORIES = {
    "twins whose first start failed half-way": Story(
        seed="twins",
        mode=Mode.LIVENESS,
        partition_count=6,
        node_count=2,
        config=config(load_balancing_strategy=LoadBalancingStrategy.BALANCED),
        noise=StoreFaults(answer_lost_rate=0.2, silence=timedelta(seconds=1)),
        faults=tuple(fault(20.0 * n, "twin", n) for n in range(1, 6)),
    ),
    "presence deleted under leases by session": Story(
        seed="deleted presence",
        mode=Mode.SAFETY,
        partition_count=9,
        node_count=4,
        config=config(
            load_balancing_strategy=LoadBalancingStrategy.GREEDY,
            load_balancing_interval=timedelta(seconds=5),
            ownership_expiration=timedelta(seconds=15),
            lease_mode=LeaseMode.SESSION,
        ),
        faults=tuple(fault(40 + 21.3 * n, "delete_members", n) for n in range(8)),
    ),
    "a hub that grows beside Azure's processors": Story(
        seed="grown",
        mode=Mode.LIVENESS,
        partition_count=8,
        node_count=3,
        config=config(),
        foreign=("azure-python-greedy", "azure-python-balanced"),
        faults=(fault(60, "grow", 2),),
    ),
    "a machine that slept for longer than a lease lives": Story(
        seed="slept",
        mode=Mode.LIVENESS,
        partition_count=5,
        node_count=2,
        config=config(),
        publish_every_s=0.3,
        faults=tuple(fault(30 + 150 * n, "sleep", n, 70 + n) for n in range(4)),
    ),
    "everybody is cut off while clocks run apart": Story(
        seed="apart",
        mode=Mode.LIVENESS,
        partition_count=7,
        node_count=3,
        config=config(),
        publish_every_s=0.3,
        clock_rate_max=0.05,
        faults=tuple(fault(20 + 90 * n, "cut_off", n, 85) for n in range(5)),
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_what_is_known_stays_mended(name):
    """Each holds every promise now."""
    run_processes(tell(STORIES[name]))
