"""Two processors with one owner id: which one yields."""

from datetime import UTC, datetime, timedelta

import pytest

from eventproc._core.ownership.members import OVERWRITES_MAX, Rivals
from eventproc.models import Member, MembershipSnapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANSWER_WITHIN = timedelta(seconds=12)


def incarnation(name: str, age_s: float = 0.0, etag: int = 0) -> Member:
    """The member record as this incarnation wrote it."""
    last_modified = NOW - timedelta(seconds=age_s)
    return Member(owner_id="a", incarnation=name, etag=str(etag), last_modified=last_modified)


def must_yield(rivals: Rivals, me: str, other: Member, resolution_s: float = 0.0) -> bool:
    """Whether *me* yields to the record of *other*."""
    present = MembershipSnapshot(
        members=(other,), as_of=NOW, resolution=timedelta(seconds=resolution_s)
    )
    return rivals.must_yield(incarnation(me), other, present, ANSWER_WITHIN, is_late=False)


@pytest.mark.parametrize(("age_s", "is_late"), [(12.0, False), (13.0, False), (13.1, True)])
def test_an_incarnation_that_was_not_answered_in_time_stays(age_s, is_late):
    """Times may be rounded down by the resolution of the store, here a second."""
    assert must_yield(Rivals(), "1", incarnation("0", age_s), resolution_s=1.0) is is_late


def test_an_incarnation_that_was_displaced_and_is_back_stays():
    """It was there first."""
    assert must_yield(Rivals().displacing("0"), "1", incarnation("0"))
    assert not must_yield(Rivals(), "1", incarnation("0"))


def test_of_two_that_keep_overwriting_each_other_the_lower_incarnation_yields():
    """After so many times, so exactly one of them stays."""
    lower, higher = Rivals(), Rivals()
    for etag in range(OVERWRITES_MAX):
        lower = lower.meeting(incarnation("2", etag=etag), 0.0)
        higher = higher.meeting(incarnation("1", etag=etag), 0.0)
        assert not must_yield(lower, "1", incarnation("2"))

    last = OVERWRITES_MAX
    assert must_yield(lower.meeting(incarnation("2", etag=last), 0.0), "1", incarnation("2"))
    assert not must_yield(higher.meeting(incarnation("1", etag=last), 0.0), "2", incarnation("1"))


def test_one_write_of_another_incarnation_that_is_read_often_is_one():
    """A holder whose answers the store refuses reads it at every poll, and keeps trying."""
    rivals = Rivals()
    for _ in range(2 * OVERWRITES_MAX):
        rivals = rivals.meeting(incarnation("2"), 0.0)

    assert not must_yield(rivals, "1", incarnation("2"))


def test_another_incarnation_is_recent_for_an_expiration():
    """After that no write of it can be under way."""
    rivals, expiration = Rivals().meeting(incarnation("2"), 100.0), timedelta(seconds=60)

    assert rivals.is_recent(159.9, expiration)
    assert not rivals.is_recent(160.0, expiration)
    assert not Rivals().is_recent(0.0, expiration)
