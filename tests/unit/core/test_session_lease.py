"""Who is alive where one record keeps all leases of a processor, and who has to say who is not."""

from datetime import UTC, datetime, timedelta

import pytest

from eventproc.core.plan import rank
from eventproc.core.session_lease import live_session_owners, sessions_to_end
from eventproc.membership import LeaseMode, Member, MembershipSnapshot, MemberStatus
from eventproc.models import OwnershipSnapshot, PartitionOwnership

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXPIRATION = timedelta(seconds=60)


def member(owner_id: str, age_s: float, status=MemberStatus.ACTIVE) -> Member:
    """A session that was renewed so long ago."""
    return Member(
        owner_id=owner_id,
        incarnation="1",
        status=status,
        lease_mode=LeaseMode.SESSION,
        etag="1",
        last_modified=NOW - timedelta(seconds=age_s),
    )


def present(*members: Member) -> MembershipSnapshot:
    """A listing of presence."""
    return MembershipSnapshot(members=members, as_of=NOW)


def live(*members: Member, absent_since_s=(), now_s=0.0, is_after_outage=False) -> dict[str, str]:
    """Who owns partition 0, whose record names "a" and is an hour old."""
    record = PartitionOwnership(
        partition_id="0", owner_id="a", etag="1", last_modified=NOW - timedelta(hours=1)
    )
    return live_session_owners(
        OwnershipSnapshot(ownerships=(record,), as_of=NOW),
        {m.owner_id: m for m in members},
        dict(absent_since_s),
        expiration=EXPIRATION,
        now_s=now_s,
        is_after_outage=is_after_outage,
    )


def test_nobody_is_dead_before_it_was_declared():
    """However old its presence is: its renewal may be under way."""
    assert live(member("a", 3600)) == {"0": "a"}
    assert live(member("a", 0, MemberStatus.DEAD)) == {}


def test_an_owner_that_is_missed_has_an_expiration_to_come_back():
    """Somebody deleted its presence record by hand, perhaps."""
    assert live(now_s=500.0) == {"0": "a"}
    assert live(absent_since_s={"a": 450.0}, now_s=500.0) == {"0": "a"}
    assert live(absent_since_s={"a": 430.0}, now_s=500.0) == {}
    assert live(absent_since_s={"a": 430.0}, now_s=500.0, is_after_outage=True) == {"0": "a"}


@pytest.mark.parametrize(
    ("silent_s", "others"), [(59, False), (61, False), (74, False), (76, True)]
)
def test_the_first_has_the_duty_and_then_everybody(silent_s, others):
    """By rank; a quarter of an expiration later nobody waits for it any more."""
    first, second = sorted(["b", "c"], key=rank)
    seen = present(member("a", silent_s), member("b", 1), member("c", 1))

    def to_end(me: str) -> list[str]:
        return [m.owner_id for m in sessions_to_end(seen, me, ["a"], expiration=EXPIRATION)]

    assert to_end(first) == (["a"] if silent_s > 60 else [])
    assert to_end(second) == (["a"] if others else [])


def test_only_who_owns_something_has_to_be_declared():
    """And nobody declares itself dead, nor anybody twice."""
    silent, dead = member("a", 100), member("b", 100, MemberStatus.DEAD)

    assert sessions_to_end(present(silent), "me", [], expiration=EXPIRATION) == []
    assert sessions_to_end(present(dead), "me", ["b"], expiration=EXPIRATION) == []
    assert sessions_to_end(present(silent), "a", ["a"], expiration=EXPIRATION) == []
