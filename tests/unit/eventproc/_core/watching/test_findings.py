"""What needs attention in a group as a whole."""

import pytest

from eventproc._core.watching.causes import Kind
from eventproc._core.watching.findings import is_late, needs_whole_checkpoint, stuck_partitions
from eventproc.models import MemberStatus
from tests.unit.eventproc._core.watching.readings import (
    RULES,
    end,
    group,
    member,
    partition,
    watched,
)


def kinds(reading):
    """Return the kinds of the findings of one reading."""
    return [finding.kind for finding in watched([reading])[1]]


def test_a_group_in_good_order_has_no_findings():
    """Owners that renew, and nothing to do."""
    assert kinds(group(0, [partition("0"), partition("1", "b")])) == []


def test_a_group_without_a_live_member_is_not_running():
    """One finding for all partitions, however each of them was lost."""
    lost = [
        partition("0", "a", is_expired=True, renewed_ago_s=99, end=end(100, 30)),
        partition("1", None, renewed_ago_s=99, end=end(100, 15)),
    ]
    (finding,) = watched([group(100, lost, [member("a", is_live=False)])])[1]

    assert finding.kind is Kind.NOT_RUNNING
    assert finding.partition_ids == ("0", "1")
    assert "and 25 events wait" in finding.text


def test_a_group_is_not_running_since_its_last_owner_went():
    """Until then, some partitions were handled."""
    rest = partition("1", None, renewed_ago_s=40, end=end(100, 15))
    lost = partition("0", "a", is_expired=True, renewed_ago_s=70, end=end(100, 30))
    (finding,) = watched([group(100, [lost, rest], [member("a", is_live=False)])])[1]

    assert finding.since_s == 60


def test_a_group_that_stopped_after_all_was_handled_is_not_stuck():
    """Nothing waits for it."""
    found = watched([group(100, [partition("0", None, end=end(100, 10))], [])])[1]

    assert [f.kind for f in found] == [Kind.STOPPED]
    assert stuck_partitions(found) == {}


def test_without_the_hub_a_group_without_members_may_have_work():
    """So it counts as stuck."""
    assert kinds(group(100, [partition("0", None)], [])) == [Kind.NOT_RUNNING]


def test_a_group_without_any_record_has_no_findings():
    """It may not have been started yet."""
    assert kinds(group(100, [], [])) == []


@pytest.mark.parametrize(("silent_s", "late"), [(None, False), (18, False), (18.1, True)])
def test_a_member_is_late_when_it_missed_a_renewal(silent_s, late):
    """Leases are renewed when they are a third of the expiration old; here it is 30 s."""
    assert is_late(silent_s, 30) is late
    assert kinds(group(0, [partition("0")], [member("a", silent_s=silent_s)])) == [Kind.LATE] * late


@pytest.mark.parametrize(("silent_s", "are_all"), [((25, 25), True), ((25, 1), False)])
def test_if_all_members_are_late_the_assumed_expiration_may_be_wrong(silent_s, are_all):
    """It is an option of whoever looks. One member alone is late for a reason of its own."""
    members = [member(name, silent_s=s) for name, s in zip("ab", silent_s, strict=True)]
    (_, findings) = watched([group(0, [partition("0")], members)])

    assert {"--expiration" in f.remedy for f in findings if f.kind is Kind.LATE} == {are_all}


def test_a_lost_member_is_told_beside_what_else_is_wrong():
    """Unless that names the member."""
    members = [member("a", placement="Ring"), member("b"), member("c", is_live=False)]
    owned_by_lost = partition("0", "c", is_expired=True, renewed_ago_s=70, end=end(100, 30))
    beside = watched([group(100, [partition("0", "a")], members)])[1]
    (named,) = watched([group(100, [owned_by_lost], members[1:])])[1]

    assert {finding.kind for finding in beside} == {Kind.PLACEMENTS, Kind.LOST}
    assert (named.kind, named.member_ids) == (Kind.UNOWNED, ("c",))


def test_a_member_that_restarts_is_away_on_purpose():
    """It keeps its partitions meanwhile."""
    away = member("a", silent_s=25, status=MemberStatus.RESTARTING)

    assert kinds(group(0, [partition("0")], [away])) == []


def test_placements_that_differ_are_named():
    """As during a rolling deployment."""
    members = [member("a", placement="Even"), member("b", placement="Weighted")]

    assert kinds(group(0, [partition("0")], members)) == [Kind.PLACEMENTS]


def test_the_most_urgent_finding_comes_first():
    """Damage before a late member."""
    damaged = partition("0", error="no JSON")

    assert kinds(group(0, [damaged], [member("a", silent_s=25)])) == [Kind.DAMAGED, Kind.LATE]


def test_more_of_a_checkpoint_is_read_before_its_partition_counts_as_stuck():
    """At half the time, so that the finding has its reason from the start."""
    readings = [
        group(at_s, [partition("0", written_ago_s=at_s, end=end(at_s, 50))])
        for at_s in range(0, 61, 5)
    ]
    memory = watched(readings)[0]["0"]

    assert not needs_whole_checkpoint(memory, 29, RULES)
    assert needs_whole_checkpoint(memory, 30, RULES)
