"""Session leases: which owners are alive, and which member must fence one that is not."""

from datetime import UTC, datetime, timedelta

import pytest

from eventproc.core.plan import rank
from eventproc.core.session_lease import live_session_owners, members_to_fence
from eventproc.models import (
    LeaseMode,
    Member,
    MembershipSnapshot,
    MemberStatus,
    OwnershipSnapshot,
    PartitionOwnership,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXPIRATION = timedelta(seconds=60)


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


def live(
    *members: Member,
    absent_since_s=(),
    now_s=0.0,
    is_after_outage=False,
    age_s=3600.0,
    resolution_s=0.0,
) -> dict[str, str]:
    """The live owner of partition 0, whose record names "a" and was written *age_s* seconds ago."""
    record = PartitionOwnership(
        partition_id="0", owner_id="a", etag="1", last_modified=NOW - timedelta(seconds=age_s)
    )
    resolution = timedelta(seconds=resolution_s)
    return live_session_owners(
        OwnershipSnapshot(ownerships=(record,), as_of=NOW, resolution=resolution),
        {m.owner_id: m for m in members},
        dict(absent_since_s),
        expiration=EXPIRATION,
        now_s=now_s,
        is_after_outage=is_after_outage,
    )


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
    """Long enough to write it again after an operator deleted it."""
    assert live(now_s=500.0) == {"0": "a"}
    assert live(absent_since_s={"a": 450.0}, now_s=500.0) == {"0": "a"}
    assert live(absent_since_s={"a": 430.0}, now_s=500.0) == {}
    assert live(absent_since_s={"a": 430.0}, now_s=500.0, is_after_outage=True) == {"0": "a"}


@pytest.mark.parametrize(
    ("silent_s", "others"), [(59, False), (61, False), (74, False), (76, True)]
)
def test_the_first_member_by_rank_fences_and_later_every_member(silent_s, others):
    """The others wait for a quarter of the expiration longer."""
    first, second = sorted(["b", "c"], key=rank)
    seen = present(member("a", silent_s), member("b", 1), member("c", 1))

    def to_fence(me: str) -> list[str]:
        return [m.owner_id for m in members_to_fence(seen, me, ["a"], expiration=EXPIRATION)]

    assert to_fence(first) == (["a"] if silent_s > 60 else [])
    assert to_fence(second) == (["a"] if others else [])


def test_only_another_owner_that_is_not_fenced_yet_is_fenced():
    """Not a member without partitions, not one that is dead already, not the processor itself."""
    silent, dead = member("a", 100), member("b", 100, MemberStatus.DEAD)

    assert members_to_fence(present(silent), "me", [], expiration=EXPIRATION) == []
    assert members_to_fence(present(dead), "me", ["b"], expiration=EXPIRATION) == []
    assert members_to_fence(present(silent), "a", ["a"], expiration=EXPIRATION) == []
