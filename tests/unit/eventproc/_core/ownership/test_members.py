"""The status of a member, two members with one owner id, and those that a roster names."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.ownership.cycle import decide
from eventproc._core.ownership.members import (
    CHANGES,
    OVERWRITES_MAX,
    ExpectedMembers,
    OwnRecord,
    Rivals,
    first_status,
    member_step,
    observe_expected,
)
from eventproc._core.placement.even import Even
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.published import Published
from eventproc._core.placement.published_plan import StoredPlan
from eventproc.models import Member, MembershipSnapshot, MemberStatus
from tests.unit.eventproc._core.ownership.listings import (
    BEGIN_S,
    NOW,
    RULES,
    UNPOLLED,
    listing,
    member,
    polled,
    published,
)

CHANGED = {
    (MemberStatus.STANDBY, MemberStatus.ACTIVE),
    (MemberStatus.STANDBY, MemberStatus.LEAVING),
    (MemberStatus.STANDBY, MemberStatus.RESTARTING),
    (MemberStatus.ACTIVE, MemberStatus.LEAVING),
    (MemberStatus.ACTIVE, MemberStatus.RESTARTING),
}


@pytest.mark.parametrize(("before", "after"), list(product(CHANGES, MemberStatus)))
def test_a_processor_changes_its_status_only_towards_its_end(before, after):
    """A change that is not allowed leaves the record as it is."""
    own = OwnRecord(member=Member(owner_id="a", incarnation="1", status=before), entered_at_s=0.0)
    expected = after if (before, after) in CHANGED else before

    assert own.changed_to(after).member.status is expected


@pytest.mark.parametrize(
    ("answer_within_s", "silent_s", "yields"),
    [(12, 20, False), (12, 20.1, True), (30, 30, False), (30, 30.1, True)],
)
def test_a_processor_yields_if_it_was_silent_while_a_newcomer_may_have_waited(
    answer_within_s, silent_s, yields
):
    """A newcomer waits for an answer, and renews its record after a third of the expiration."""
    own = OwnRecord(
        member=Member(owner_id="me", incarnation="1"),
        entered_at_s=0.0,
        sent_at_s=1000.0,
        silent_s=silent_s,
        answer_within=timedelta(seconds=answer_within_s),
    )
    newcomer = replace(own.member, incarnation="0", etag="2", last_modified=NOW)
    step = member_step(
        own,
        MembershipSnapshot(members=(newcomer,), as_of=NOW),
        RULES,
        1000.0,
        asked_at_s=1000.0,
        owns_something=False,
        is_trusted=True,
    )

    assert (step.yields_because is not None) is yields


@pytest.mark.parametrize(("expirations", "is_renewed"), [(4, False), (4.1, True)])
def test_an_owner_renews_its_member_record_after_some_expirations(expirations, is_renewed):
    """Its leases say that it is alive; after its death only a young record says who is missing."""
    own = OwnRecord(
        member=Member(owner_id="me", incarnation="1"), entered_at_s=0.0, sent_at_s=1000.0
    )
    found = replace(own.member, etag="2", last_modified=NOW)
    now_s = 1000.0 + expirations * RULES.expiration.total_seconds()
    step = member_step(
        own,
        MembershipSnapshot(members=(found,), as_of=NOW),
        RULES,
        now_s,
        asked_at_s=now_s,
        owns_something=True,
        is_trusted=True,
    )

    assert (step.write is not None) is is_renewed


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


PATIENCE = timedelta(seconds=30)
RULES_R = replace(RULES, placement=Published(Even()), patience=PATIENCE)
NAMES = ("a", "b", "c")

names = st.frozensets(st.sampled_from(NAMES))
polls = st.lists(st.tuples(names | st.none(), names, st.integers(0, 20)), min_size=1, max_size=12)


def plan_expecting(text, *expected):
    """Return a published plan of a leader whose roster named these members."""
    found = published(text).published
    assert found is not None
    return replace(found, expected=expected)


def members(names):
    """Return the records of live members."""
    return [member(name) for name in names]


@given(polls)
def test_the_plan_waits_for_each_name_once_and_no_longer_than_the_patience(history):
    """From when it was first expected, and only until it has come."""
    known, now_s = ExpectedMembers(), 0.0
    awaited_since: dict[str, float] = {}
    for found, present, pause_s in history:
        before = known
        known = observe_expected(known, found, None, members(present), now_s)
        awaited = known.awaited(PATIENCE, now_s)

        assert known.names == (before.names if found is None else found)
        assert awaited <= known.names - present
        for name in awaited - before.awaited(PATIENCE, now_s):
            awaited_since[name] = now_s
        for name in awaited:
            assert now_s - awaited_since[name] < PATIENCE.total_seconds()
        now_s += pause_s


def test_a_member_that_has_come_is_awaited_no_more():
    """Also after it has left, or died."""
    known = observe_expected(ExpectedMembers(), frozenset("ab"), None, members("a"), 0)
    came = observe_expected(known, frozenset("ab"), None, members("ab"), 1)
    left = observe_expected(came, frozenset("ab"), None, members("a"), 2)

    assert known.awaited(PATIENCE, 0) == {"b"}
    assert known.awaited(PATIENCE, PATIENCE.total_seconds()) == frozenset()
    assert left.awaited(PATIENCE, 2) == frozenset()


def test_a_name_that_was_taken_out_is_awaited_anew():
    """When a set was scaled down, and is scaled up again."""
    known = observe_expected(ExpectedMembers(), frozenset("ab"), None, members("ab"), 0)
    fewer = observe_expected(known, frozenset("a"), None, members("a"), 1)
    more = observe_expected(fewer, frozenset("ab"), None, members("a"), 2)

    assert fewer.names == {"a"}
    assert more.awaited(PATIENCE, 2) == {"b"}


def test_without_an_answer_the_plan_counts():
    """Its members have come, whether they are still there or not."""
    found = plan_expecting("5 a 0:a 1:b", "a", "b", "c")
    known = observe_expected(ExpectedMembers(), None, found, members("a"), 0)

    assert known.names == {"a", "b", "c"}
    assert known.awaited(PATIENCE, 0) == {"c"}


def planned(expected, present="me/P", partitions="0 1 2 3", after_s=0.0, rules=RULES_R):
    """Return what the leader publishes; after some seconds, by partition."""
    seen = replace(listing(partitions, present, rules, stored=published("")), expected=expected)
    memory = polled(UNPOLLED, seen, rules, BEGIN_S)
    for at_s in range(1, int(after_s) + 3):
        memory = polled(memory, seen, rules, BEGIN_S + at_s)
    publish = decide(memory, rules).publish
    return publish and publish.published


def test_the_leader_plans_for_those_that_have_not_come():
    """They are no members of the published plan, so that their coming asks for the next one."""
    found = planned(frozenset({"me", "other"}))

    assert found.members == ("me",)
    assert found.expected == ("me", "other")
    assert sorted(found.owner_by_resource.values()) == ["me", "me", "other", "other"]


def test_after_the_patience_the_others_get_everything():
    """The roster still names it."""
    found = planned(frozenset({"me", "other"}), after_s=PATIENCE.total_seconds())

    assert found.expected == ("me", "other")
    assert set(found.owner_by_resource.values()) == {"me"}


def test_numbers_are_counted_in_the_roster():
    """Those of members that are there count without one."""
    rules = replace(RULES_R, placement=Published(Ordinal()), facts=replace(RULES.facts, ordinal=0))
    present, later = "me/Published:Ordinal/0", PATIENCE.total_seconds()
    names = frozenset({"me-0", "me-1"})

    assert set(planned(names, present, rules=rules).owner_by_resource.values()) == {"me", "me-1"}
    assert set(planned(names, present, "0 1", later, rules).owner_by_resource.values()) == {"me"}


def test_what_is_planned_for_one_that_has_not_come_stays_as_it_is():
    """Its owner keeps it, and what has no owner is not claimed."""
    found = plan_expecting("5 b 0:me 1:me 2:c 3:c :b", "me", "b", "c")
    stored = StoredPlan(etag="1", published=found)
    seen = listing("0:me 1 2:me 3", "me/P b/P", RULES_R, stored=stored)
    memory = UNPOLLED
    for at_s in range(3):
        memory = polled(memory, seen, RULES_R, BEGIN_S + at_s)
    actions = decide(memory, RULES_R)

    assert [claim.partition_id for claim in actions.moves.claims] == ["1"]
    assert actions.moves.hand_overs == {}


def test_without_a_roster_no_member_is_expected():
    """Although a former leader had one."""
    rules = replace(RULES_R, patience=None)
    found = plan_expecting("5 me 0:me 1:c", "me", "c")
    seen = listing("0:me 1", "me/P", rules, stored=StoredPlan(etag="1", published=found))
    memory = UNPOLLED
    for at_s in range(3):
        memory = polled(memory, seen, rules, BEGIN_S + at_s)
    publish = decide(memory, rules).publish

    assert publish is not None
    assert publish.published.expected == ()
    assert set(publish.published.owner_by_resource.values()) == {"me"}


def test_a_leader_that_waits_polls_as_often_as_one_that_changes_something():
    """Otherwise it would notice late that the patience is over."""
    found = replace(plan_expecting("5 me 0:me 1:c", "me", "c"), members=("me",))
    seen = listing("0:me 1", "me/P", RULES_R, stored=StoredPlan(etag="1", published=found))
    memory = UNPOLLED
    for at_s in range(3):
        memory = polled(memory, seen, RULES_R, BEGIN_S + at_s)
    actions = decide(memory, RULES_R)

    assert actions.awaited == {"c"}
    assert actions.is_leader
    assert not actions.is_balanced


@pytest.mark.parametrize(
    ("leader", "expected", "awaited"),
    [("me", ("b", "c", "me"), {"c"}), ("b", ("b", "c", "me"), set()), ("me", ("b", "me"), set())],
    ids=["the leader waits", "another one leads", "all have come"],
)
def test_only_the_leader_waits_for_members_that_have_not_come(leader, expected, awaited):
    """When the patience is over it has to publish."""
    found = replace(plan_expecting(f"5 {leader} 0:me 1:b", *expected), members=("b", "me"))
    stored = StoredPlan(etag="1", published=found)
    seen = listing("0:me 1:b", "me/P b/P", RULES_R, stored=stored)
    memory = UNPOLLED
    for at_s in range(3):
        memory = polled(
            memory, replace(seen, expected=frozenset(expected)), RULES_R, BEGIN_S + at_s
        )

    assert decide(memory, RULES_R).awaited == awaited


@pytest.mark.parametrize(
    ("status", "deployment_id", "owners", "expected"),
    [
        (MemberStatus.ACTIVE, "old", (), MemberStatus.STANDBY),
        (MemberStatus.LEAVING, "old", (), MemberStatus.STANDBY),
        (MemberStatus.STANDBY, "old", (), MemberStatus.ACTIVE),
        (MemberStatus.ACTIVE, "new", (), MemberStatus.ACTIVE),
        (MemberStatus.ACTIVE, "old", ("me",), MemberStatus.ACTIVE),
    ],
)
def test_a_newcomer_is_a_standby_beside_one_that_it_can_replace(
    status, deployment_id, owners, expected
):
    """One of another deployment that has a share, or is handing it over just now."""
    own = Member(owner_id="me", incarnation="1", deployment_id="new")
    other = Member(owner_id="b", incarnation="2", deployment_id=deployment_id, status=status)

    assert first_status(own, [own, other], owners) is expected
