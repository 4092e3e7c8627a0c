"""What a processor remembers from poll to poll, and for how long."""

from dataclasses import replace
from datetime import timedelta

import pytest

from eventproc._core.ownership.cycle import decide
from eventproc._core.ownership.memory import GroupMemory
from eventproc._core.ownership.stability import (
    UNSEEN,
    longer_than,
    observe_plan_input,
    stable_in_s,
)
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.placement import MemberFacts
from eventproc._core.placement.ring import Ring
from eventproc._core.placement.weighted import Weighted
from tests.unit.eventproc._core.ownership.listings import (
    BEGIN_S,
    RULES,
    UNPOLLED,
    described,
    listing,
    polled,
)

SECOND = replace(RULES, rebalance_interval=timedelta(seconds=1.25))
"""A membership is stable after 1 s, and unstable for 5 s at most."""


def test_a_membership_is_stable_after_it_lasted_for_the_interval():
    """Each change restarts the interval, but for four rebalance intervals at most."""
    one, two = frozenset("a"), frozenset("ab")
    seen = observe_plan_input(UNSEEN, one, SECOND, 10.0)

    assert seen.is_unstable(10.9, SECOND)
    assert not seen.is_unstable(11.0, SECOND)
    assert stable_in_s([UNSEEN, seen], SECOND, 10.75) == 0.25
    assert stable_in_s([seen], SECOND, 11.0) == 0
    assert stable_in_s([seen, observe_plan_input(UNSEEN, two, SECOND, 10.5)], SECOND, 11.0) == 0.5
    again = observe_plan_input(seen, one, SECOND, 10.5)
    assert again == replace(seen, seen_s=10.5)

    flapping = [observe_plan_input(seen, two, SECOND, 20.0)]
    for number in range(1, 11):
        members = one if number % 2 else two
        flapping.append(observe_plan_input(flapping[-1], members, SECOND, 20.0 + number / 2))
    assert [now.is_unstable(now.since_s, SECOND) for now in flapping] == [True] * 10 + [False]


def test_a_membership_is_unconfirmed_if_only_one_poll_showed_it():
    """A shorter one, between two polls that are close, neither counts nor ends the row."""
    seen = observe_plan_input(UNSEEN, 1, SECOND, 10.0)
    confirmed = observe_plan_input(observe_plan_input(seen, 1, SECOND, 11.0), 2, SECOND, 11.5)
    unconfirmed = observe_plan_input(seen, 2, SECOND, 11.0)
    short = observe_plan_input(unconfirmed, 3, SECOND, 11.5)

    assert (confirmed.unconfirmed_count, confirmed.unstable_since_s) == (0, 11.5)
    assert (unconfirmed.unconfirmed_count, unconfirmed.unstable_since_s) == (1, 11.0)
    assert (short.unconfirmed_count, short.unstable_since_s) == (1, 11.0)


def test_what_has_lasted_for_just_the_span_has_not_lasted_longer():
    """An owner has its whole time-out."""
    span = timedelta(seconds=30)

    assert longer_than(span, {"a": 10.0, "b": 9.9}, 40.0) == {"b"}


def test_the_wait_ends_if_every_poll_shows_other_members():
    """Polls are further apart than a membership has to last, so each might have lasted."""
    now = observe_plan_input(UNSEEN, frozenset("a"), SECOND, 10.0)
    are_unstable = []
    for number in range(1, 7):
        now = observe_plan_input(now, frozenset(f"a{number}"), SECOND, 10 + 1.25 * number)
        are_unstable.append(now.is_unstable(now.since_s, SECOND))
    lasting = observe_plan_input(now, now.plan_input, SECOND, 20.0)
    changed = observe_plan_input(lasting, frozenset("a"), SECOND, 21.25)

    assert are_unstable == [True] * 3 + [False] * 3
    assert changed.is_unstable(21.25, SECOND)


WEIGHTED = {"placement": Weighted()}
FIRST = {"placement": Ordinal(), "facts": MemberFacts(ordinal=0)}
ORDINALS = "me/Ordinal/0 b!/Ordinal/1 c/Ordinal/2"
HEAVY = "me/Weighted b~/Weighted/x3"
NO_RECORD = "me/Weighted"

CHANGES = {
    # Of 0 to 3, Ordinal gives 2 to b; without b, to c.
    "b lost all that it had, and its record is old": (
        ("0:me 1:me 2:me 3:b", ORDINALS),
        ("0:me 1:me 2:me 3:c", ORDINALS, 2),
        FIRST,
        "drain 2 for b",
    ),
    "it had nothing before": (
        ("0:me 1:me 2:me 3:c", ORDINALS),
        ("0:me 1:me 2:me 3:c", ORDINALS, 2),
        FIRST,
        "drain 2 for c",
    ),
    "what it had had expired": (
        ("0:me 1:me 2:me 3:b!", ORDINALS),
        ("0:me 1:me 2:me 3:c", ORDINALS, 2),
        FIRST,
        "drain 2 for c",
    ),
    "b gave its last partition away, and its record is of an hour ago": (
        ("0:me 1:b", "me b!!"),
        ("0:me 1:-", "me b!!", 2),
        {},
        "rest",
    ),
    "what it gave away had expired, and its record is of an hour ago": (
        ("0:me 1:b!", "me b!!"),
        ("0:me 1:-", "me b!!", 2),
        {},
        "claim 1, forget b",
    ),
    # Of 0 to 3, Weighted leaves 1 to 3 to b; if b were foreign, Even would give one more to me.
    "b owns something, and its record was deleted": (
        ("0:me 1:b 2:b 3:b", HEAVY),
        ("0:me 1:b 2:b 3:b", NO_RECORD, 60),
        WEIGHTED,
        "rest",
    ),
    "it was deleted an expiration ago": (
        ("0:me 1:b 2:b 3:b", HEAVY),
        ("0:me 1:b 2:b 3:b", NO_RECORD, 63),
        WEIGHTED,
        "steal 1",
    ),
    "it was deleted when b had given all away": (
        ("0:me 1:b 2:b 3:b", HEAVY),
        ("0:me 1:- 2:- 3:-", NO_RECORD, 2),
        WEIGHTED,
        "claim 1, claim 2, claim 3",
    ),
    "it was deleted, and what b had has expired": (
        ("0:me 1:b 2:b 3:b", HEAVY),
        ("0:me 1:b! 2:b! 3:b!", NO_RECORD, 2),
        WEIGHTED,
        "claim 1, claim 2, claim 3",
    ),
}


@pytest.mark.parametrize(("before", "then", "changed", "written"), CHANGES.values(), ids=CHANGES)
def test_a_change_since_an_earlier_listing_gives_these_actions(before, then, changed, written):
    """A situation names the earlier listing, the one that follows, for how long, and the rest."""
    rules = replace(RULES, **changed)
    (earlier, earlier_members), (partitions, members, for_s) = before, then
    memory = polled(UNPOLLED, listing(earlier, earlier_members, rules), rules, BEGIN_S)
    for later_s in range(1, for_s + 1):
        memory = polled(memory, listing(partitions, members, rules), rules, BEGIN_S + later_s)

    assert described(decide(memory, rules)) == written


def test_a_process_of_another_deployment_is_no_new_membership():
    """It starts anew under its owner id, and the plan stays as it is."""
    before, then = (listing("0:me 1:b 2 3", f"me@1 b@{version}") for version in (1, 2))
    memory = polled(UNPOLLED, before, RULES, BEGIN_S)
    memory = polled(memory, then, RULES, BEGIN_S + 1)

    assert memory.membership.since_s == BEGIN_S


AFTER_OUTAGE = BEGIN_S + RULES.expiration.total_seconds() / 2 + 1


@pytest.mark.parametrize(
    ("me", "before", "after", "written"),
    [
        ("me", "b", "b", "drain 1 for b"),
        ("me", "b", "b!", "wait"),
        ("me=leaving", "b", "b", "drain 0 for b, drain 1 for b"),
        ("me=leaving", "b", "b!", "drain 0 for None, drain 1 for None"),
    ],
    ids=["it renewed", "it may be dead", "I leave, and it renewed", "I leave, and it may be dead"],
)
def test_after_an_outage_only_a_member_that_renewed_is_given_something(me, before, after, written):
    """The record of a partition that is handed over makes its new owner look alive."""
    memory = polled(UNPOLLED, listing("0:me 1:me", f"{me} {before}", RULES), RULES, BEGIN_S)
    memory = polled(memory, listing("0:me 1:me", f"{me} {after}", RULES), RULES, AFTER_OUTAGE)

    assert described(decide(memory, RULES)) == written


@pytest.mark.parametrize(("after", "written"), [("b", "drain 1 for b"), ("b!", "wait")])
def test_after_an_outage_an_owner_that_has_not_renewed_is_given_no_more(after, written):
    """It keeps what is recorded as its own, but may be dead."""
    before, then = (listing("0:me 1:me 2:me 3:b!", f"me {b}", RULES) for b in ("b", after))
    memory = polled(polled(UNPOLLED, before, RULES, BEGIN_S), then, RULES, AFTER_OUTAGE)

    assert described(decide(memory, RULES)) == written


@pytest.mark.parametrize(
    ("unanswered_for_s", "written"),
    [(0.0, "claim 1"), (10.0, "claim 1"), (10.1, "rest")],
)
def test_while_the_store_answers_no_write_an_owner_that_does_not_renew_is_not_dead(
    unanswered_for_s, written
):
    """It may have had no answer either. For a sixth of the expiration a write may just be slow."""
    expired = listing("0:me 1:b!", "me b!", RULES)
    memory = polled(UNPOLLED, expired, RULES, BEGIN_S)
    memory = polled(memory, replace(expired, unanswered_s=unanswered_for_s), RULES, BEGIN_S + 20)

    assert described(decide(memory, RULES)) == written


def test_after_an_outage_an_owner_is_not_forgotten_however_old_its_record_is():
    """It had no time to renew; its member record says how it takes part. The own one is renewed."""
    before, then = listing("0:me 1:b", "me b", RULES), listing("0:me 1:b!", "me b!!", RULES)
    memory = polled(UNPOLLED, before, RULES, BEGIN_S)
    memory = polled(memory, then, RULES, BEGIN_S + 3600)

    assert described(decide(memory, RULES)) == "write active"


@pytest.mark.parametrize(
    ("partitions", "members", "changed", "outsiders"),
    [
        ("0:me 1:x", "me b", {}, set()),
        ("0:me 1:x", "me/Ring b/Ring", {"placement": Ring()}, {"x"}),
        ("0:me 1:b", "me/Ring b/Ring", {"placement": Ring()}, set()),
    ],
    ids=["admitted", "not by the placement", "no foreign member"],
)
def test_foreign_members_are_outsiders_where_they_are_not_admitted(
    partitions, members, changed, outsiders
):
    """The balancer reports them."""
    rules = replace(RULES, **changed)
    memory = polled(UNPOLLED, listing(partitions, members, rules), rules, BEGIN_S)

    assert memory.outsiders == outsiders


def waiting(memory: GroupMemory, partitions: str, now_s: float) -> GroupMemory:
    """The memory after a poll of members a, b and this processor."""
    return polled(memory, listing(partitions, "me a b"), RULES, now_s)


def test_handoff_timeout_counts_from_when_a_partition_was_first_due():
    """The time restarts with another owner, and is dropped when the planned owner has it."""
    first = waiting(UNPOLLED, "0:a 1:a 2:b", 1.0)
    same = waiting(first, "0:a 1:a 2:b", 2.0)
    ((due, owner),) = first.waiting_since_s

    assert owner == "a"
    assert first.waiting_since_s == same.waiting_since_s == {(due, "a"): 1.0}
    moved = waiting(same, "0:b 1:b 2:a", 3.0)
    assert {at_s for (_, o), at_s in moved.waiting_since_s.items() if o == "b"} == {3.0}
    assert waiting(moved, "0:me 1:a 2:b", 4.0).waiting_since_s == {}


def test_an_absence_counts_from_the_first_poll_without_the_member_record():
    """It ends when the record is there again, and does not restart at each poll."""
    missing = listing("0:x", "me")
    first = polled(UNPOLLED, missing, RULES, BEGIN_S)
    second = polled(first, missing, RULES, BEGIN_S + 1)
    back = polled(second, listing("0:x", "me x"), RULES, BEGIN_S + 2)

    assert first.living.absent_since_s == second.living.absent_since_s == {"x": BEGIN_S}
    assert back.living.absent_since_s == {}


def test_an_outage_starts_a_grace_and_restarts_what_was_waited_for():
    """Half an expiration without an answer is an outage."""
    first = waiting(UNPOLLED, "0:a 1:a 2:b", 1.0)
    silent_s = RULES.expiration.total_seconds() / 2

    assert waiting(first, "0:a 1:a 2:b", 1.0 + silent_s).grace_until_s < 1.0
    after = waiting(first, "0:a 1:a 2:b", 1.1 + silent_s)
    assert after.grace_until_s == 1.1 + silent_s + 20
    assert set(after.waiting_since_s.values()) == {1.1 + silent_s}


def test_after_an_outage_members_that_own_nothing_have_time_to_renew():
    """Without them the plan would move what they do not own; one that had died stays dead."""

    def poll(memory, members, at_s):
        return polled(memory, listing("0:me", members, RULES), RULES, at_s)

    first = poll(UNPOLLED, "me b c!", BEGIN_S)
    outage_s = RULES.expiration.total_seconds() / 2 + 1
    during = poll(first, "me b! c!", BEGIN_S + outage_s)
    again = poll(during, "me b! c!", BEGIN_S + outage_s + 1)
    later = poll(again, "me b! c!", BEGIN_S + outage_s + 21)

    found = [{m.owner_id for m in memory.living.members} for memory in (during, again, later)]
    assert found == [{"me", "b"}, {"me", "b"}, {"me"}]
