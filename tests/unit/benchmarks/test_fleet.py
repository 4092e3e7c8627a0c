"""When a fleet of processes counts as balanced, and what counts as handled again."""

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
    """Four partitions and two members that are no processes."""
    fleet = Fleet(SETTINGS, 4)
    fleet.members = [cast("Member", SimpleNamespace(partitions=set())) for _ in range(2)]
    return fleet


def say(fleet, number, kind, partitions, at=1e12):
    for partition in partitions:
        fleet.process_report(
            fleet.members[number], {"kind": kind, "at": at, "partition": partition}
        )


def batch(first, last):
    ages = [1.0] * (last - first + 1)
    numbers = {"first": first, "last": last, "ages_ms": ages}
    return {"kind": "batch", "at": 0.0, "cpu": 0.0, "partition": "0", **numbers}


def test_it_is_balanced_when_all_is_served_once_and_evenly(fleet):
    """Not with a partition that two serve, nor with one that nobody serves."""
    say(fleet, 0, "open", "012")
    assert fleet.episode.balanced_at_s is None
    say(fleet, 1, "open", "23")
    assert fleet.episode.balanced_at_s is None
    say(fleet, 0, "close", "2", at=2e12)

    assert fleet.episode.balanced_at_s == 2e12


def test_what_comes_later_takes_the_balance_back(fleet):
    """So the time until it is balanced is the time until it stays so."""
    say(fleet, 0, "open", "01")
    say(fleet, 1, "open", "23")
    say(fleet, 0, "close", "1")

    assert fleet.episode.balanced_at_s is None


def test_only_what_was_handled_before_is_handled_again(fleet):
    """The age of an event counts when it is handled for the first time."""
    fleet.process_report(fleet.members[0], batch(0, 4))
    fleet.process_report(fleet.members[1], batch(3, 6))

    assert fleet.episode.redelivered == 2
    assert fleet.distinct() == 7
    assert len(fleet.episode.ages_ms) == 7
