"""The limit of open files: the library warns if it is too low, the command raises it."""

import pytest

from eventproc._runtime.descriptors import (
    SOFT_LIMIT_WANTED,
    SPARE,
    raise_soft_limit,
    soft_limit,
)
from eventproc.sources.eventhubs import EventHubSource
from eventproc.sources.memory import MemoryEventSource
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup

resource = pytest.importorskip("resource")

LIMIT = 512


@pytest.fixture(name="limit")
def _limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, hard))
    yield LIMIT
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("partition_count", "per_partition", "is_logged"),
    [(LIMIT - SPARE, 1, False), (LIMIT - SPARE + 1, 1, True), (LIMIT, 0, False)],
)
def test_a_limit_below_the_number_of_partitions_is_logged_at_the_start(
    limit, caplog, monkeypatch, partition_count, per_partition, is_logged
):
    """Not when the last process that is left runs out of descriptors."""
    monkeypatch.setattr(
        MemoryEventSource, "descriptors_per_partition", property(lambda _: per_partition)
    )

    async def scenario():
        async with Setup(partition_count).processor():
            return soft_limit()

    unchanged = run_virtual(scenario())
    logged = [record for record in caplog.records if "descriptors_scarce" in record.getMessage()]

    assert unchanged == limit
    assert bool(logged) == is_logged


def test_an_event_hub_needs_one_descriptor_per_partition():
    """Each link has a connection of its own."""
    source = EventHubSource.from_connection_string(
        "Endpoint=sb://localhost;SharedAccessKeyName=a;SharedAccessKey=b;EntityPath=hub"
    )

    assert source.descriptors_per_partition == 1


@pytest.mark.parametrize(
    ("soft", "hard", "raised_to"),
    [
        (LIMIT, resource.RLIM_INFINITY, SOFT_LIMIT_WANTED),
        (LIMIT, 1024, 1024),
        (SOFT_LIMIT_WANTED, resource.RLIM_INFINITY, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
    ],
)
def test_the_command_raises_the_limit_as_far_as_the_system_allows(
    monkeypatch, soft, hard, raised_to
):
    """Never above what it wants, and never down. ``RLIM_INFINITY`` is no large number."""
    wanted = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: wanted.append(limits))

    raise_soft_limit()

    assert wanted == ([] if raised_to is None else [(raised_to, hard)])
