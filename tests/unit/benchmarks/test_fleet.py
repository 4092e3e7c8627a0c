"""When a fleet of processes is balanced, and which events count as redelivered."""

from types import SimpleNamespace
from typing import cast

import pytest

from benchmarks._fleet import Fleet, Member
from benchmarks._member import Settings

SETTINGS = Settings(
    side="eventproc", hub="", storage="", container="", interval_s=1, expiration_s=3
)


@pytest.fixture(name="fleet")
def _fleet():
    """A fleet of four partitions and two members without processes."""
    fleet = Fleet(SETTINGS, 4)
    fleet.members = [cast("Member", SimpleNamespace(partitions=set())) for _ in range(2)]
    return fleet


def send(fleet, number, kind, partitions, at=1e12):
    for partition in partitions:
        fleet.process_report(
            fleet.members[number], {"kind": kind, "at": at, "partition": partition}
        )


def batch(first, last):
    ages = [1.0] * (last - first + 1)
    numbers = {"first": first, "last": last, "ages_ms": ages}
    return {"kind": "batch", "at": 0.0, "cpu": 0.0, "partition": "0", **numbers}


def test_a_fleet_is_balanced_when_each_partition_is_served_once_and_evenly(fleet):
    """Not if a partition is served twice, or not at all."""
    send(fleet, 0, "open", "012")
    assert fleet.episode.balanced_at_s is None
    send(fleet, 1, "open", "23")
    assert fleet.episode.balanced_at_s is None
    send(fleet, 0, "close", "2", at=2e12)

    assert fleet.episode.balanced_at_s == 2e12


def test_a_later_change_revokes_the_time_to_balance(fleet):
    """So the time to balance is the time until the fleet stays balanced."""
    send(fleet, 0, "open", "01")
    send(fleet, 1, "open", "23")
    send(fleet, 0, "close", "1")

    assert fleet.episode.balanced_at_s is None


def test_only_events_handled_before_count_as_redelivered(fleet):
    """The age of an event is measured when it is handled first."""
    fleet.process_report(fleet.members[0], batch(0, 4))
    fleet.process_report(fleet.members[1], batch(3, 6))

    assert fleet.episode.redelivered == 2
    assert fleet.distinct() == 7
    assert len(fleet.episode.ages_ms) == 7
