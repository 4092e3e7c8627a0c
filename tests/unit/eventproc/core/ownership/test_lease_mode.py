"""Session leases: which owners are alive, and which member must fence one that is not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from eventproc.core.ownership.lease_mode import live_owners, of_another_mode, silent_members
from eventproc.core.placement.rank import rank
from eventproc.models import (
    LeaseMode,
    Member,
    MembershipSnapshot,
    MemberStatus,
    OwnershipSnapshot,
    PartitionOwnership,
)
from tests.unit.eventproc.core.ownership.listings import RULES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXPIRATION = timedelta(seconds=60)
SESSIONS = replace(RULES, lease_mode=LeaseMode.SESSION)


def member(owner_id: str, age_s: float, status=MemberStatus.ACTIVE) -> Member:
    """A member with a session lease that was renewed *age_s* seconds ago."""
    return Member(
        owner_id=owner_id,
        incarnation="1",
        status=status,
        lease_mode=LeaseMode.SESSION,
        etag="1",
        last_modified=NOW - timedelta(seconds=age_s),
    )


def present(*members: Member) -> MembershipSnapshot:
    """A listing of member records."""
    return MembershipSnapshot(members=members, as_of=NOW)


def owned(
    owner_id: str = "a", age_s: float = 3600.0, resolution_s: float = 0.0
) -> OwnershipSnapshot:
    """A listing with one ownership record that was written *age_s* seconds ago."""
    record = PartitionOwnership(
        partition_id="0", owner_id=owner_id, etag="1", last_modified=NOW - timedelta(seconds=age_s)
    )
    return OwnershipSnapshot(
        ownerships=(record,), as_of=NOW, resolution=timedelta(seconds=resolution_s)
    )


def live(
    *members: Member, absent=(), is_grace=False, age_s=3600.0, resolution_s=0.0
) -> dict[str, str]:
    """The live owner of partition 0, whose record names "a" and was written *age_s* seconds ago."""
    listing = owned("a", age_s, resolution_s)
    return live_owners(SESSIONS, present(*members), listing, frozenset(absent), is_grace=is_grace)


def test_no_member_is_dead_before_it_was_fenced():
    """However old its member record is: a renewal may be under way."""
    assert live(member("a", 3600)) == {"0": "a"}
    assert live(member("a", 0, MemberStatus.DEAD)) == {}


@pytest.mark.parametrize(
    ("age_s", "resolution_s", "is_live"),
    [
        (19, 0, True),
        (20, 0, True),
        (21, 0, False),
        (21, 1, True),
        (22, 1, False),
        (61, 1, True),
        (62, 1, False),
    ],
)
def test_a_fenced_owner_keeps_partitions_that_it_claimed_after_it_was_fenced(
    age_s, resolution_s, is_live
):
    """The listing of members may be older than the ownership record.

    The owner was fenced 20 s ago, or 70 s ago if its record is older than an expiration. Times
    are rounded down, so the record may seem older than it is.
    """
    fenced = member("a", 70 if age_s > 60 else 20, MemberStatus.DEAD)
    found = live(fenced, age_s=age_s, resolution_s=resolution_s)

    assert found == ({"0": "a"} if is_live else {})


def test_an_owner_without_a_member_record_is_alive_for_an_expiration():
    """Long enough to write it again after an operator deleted it; then its records decide."""
    assert live() == {"0": "a"}
    assert live(absent=["a"]) == {}
    assert live(absent=["a"], age_s=59) == {"0": "a"}
    assert live(absent=["a"], is_grace=True) == {"0": "a"}


def test_an_owner_with_another_lease_mode_lives_as_long_as_its_records():
    """It renews each of them."""
    other = replace(member("a", 0), lease_mode=LeaseMode.PARTITION)

    assert live(other) == {}
    assert live(other, age_s=59) == {"0": "a"}


def test_with_leases_of_records_an_expired_record_is_free_except_after_an_outage():
    """Live owners could not renew during it."""
    no_members, old = present(), owned("a", 61)

    assert live_owners(RULES, no_members, old, frozenset(), is_grace=False) == {}
    assert live_owners(RULES, no_members, old, frozenset(), is_grace=True) == {"0": "a"}


@pytest.mark.parametrize(
    ("silent_s", "others"), [(59, False), (61, False), (74, False), (76, True)]
)
def test_the_first_member_by_rank_fences_and_later_every_member(silent_s, others):
    """The others wait for a quarter of the expiration longer."""
    first, second = sorted(["b", "c"], key=rank)
    seen = present(member("a", silent_s), member("b", 1), member("c", 1))

    def to_fence(me: str) -> list[str]:
        return [m.owner_id for m in silent_members(seen, owned("a"), me, EXPIRATION)]

    assert to_fence(first) == (["a"] if silent_s > 60 else [])
    assert to_fence(second) == (["a"] if others else [])


def test_only_another_owner_that_is_not_fenced_yet_is_fenced():
    """Not a member without partitions, not one that is dead already, not the processor itself."""
    silent, dead = member("a", 100), member("b", 100, MemberStatus.DEAD)

    assert silent_members(present(silent), owned("other"), "me", EXPIRATION) == ()
    assert silent_members(present(dead), owned("b"), "me", EXPIRATION) == ()
    assert silent_members(present(silent), owned("a"), "a", EXPIRATION) == ()


@pytest.mark.parametrize(
    ("mode", "age_s", "found"),
    [
        (LeaseMode.SESSION, 1, {"b", "x"}),
        (LeaseMode.SESSION, 61, {"b"}),
        (LeaseMode.PARTITION, 1, {"a"}),
    ],
)
def test_foreign_members_and_leases_of_records_go_together(mode, age_s, found):
    """The record of a former process with this owner id is not another processor."""
    seen = present(
        member("a", 1),
        replace(member("b", 1), lease_mode=LeaseMode.PARTITION),
        *(replace(member("me", 1), lease_mode=each) for each in LeaseMode if each is not mode),
    )

    assert of_another_mode(mode, owned("x", age_s), seen, "me", expiration=EXPIRATION) == found
