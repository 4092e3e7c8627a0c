"""Given this listing, what does a processor write? Each situation is one line."""

from dataclasses import replace

import pytest

from eventproc._core.ownership.cycle import decide
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.placement import MemberFacts
from eventproc._core.placement.weighted import Weighted
from tests.unit.eventproc._core.ownership.listings import (
    BEGIN_S,
    RULES,
    UNPOLLED,
    actions,
    after,
    described,
    listing,
    polled,
)
from tests.unit.eventproc._core.ownership.situations import SITUATIONS


@pytest.mark.parametrize(
    ("partitions", "members", "changed", "written"), SITUATIONS.values(), ids=SITUATIONS
)
def test_a_listing_gives_these_actions(partitions, members, changed, written):
    """Each situation names the partitions, the members, what is changed, and the actions."""
    assert actions(partitions, members, **changed) == written


@pytest.mark.parametrize(
    ("found", "moved"),
    [
        ("2:b*", "drain 1 for b"),
        ("2:b!*", "drain 3 for b, drain 1 for b"),
        ("2:-*", "drain 3 for b, drain 1 for b"),
    ],
    ids=["recorded for another", "it has expired", "released"],
)
def test_a_contradicted_lease_delays_other_moves_once(found, moved):
    """If its renewal has no known outcome, the next poll plans without it, if another has it."""
    seen = listing(f"0:me 1:me {found} 3:me", "me b")
    doubtful = {p: replace(lease, is_doubtful=True) for p, lease in seen.leases.items()}
    memory = polled(UNPOLLED, seen, RULES, BEGIN_S)
    memory = polled(memory, seen, RULES, BEGIN_S + 1)
    again = polled(memory, replace(seen, leases=doubtful), RULES, BEGIN_S + 2)

    assert described(decide(memory, RULES)) == "renew 2"
    assert described(decide(again, RULES)) == f"renew 2, {moved}"


@pytest.mark.parametrize("members", ["b=leaving", "b c", "b", "c"])
def test_a_leaving_processor_sees_whether_others_move_something(members):
    """They may hand it over to this one; a foreign owner hands nothing over."""
    done = after(listing("0:b 1:b", f"me=leaving {members}"), RULES, lasting_s=1.0)

    assert done.others_move is (members in {"b=leaving", "b c"})
    own = after(listing("0:me 1:b", "me=leaving b"), RULES, lasting_s=1.0)
    assert not own.others_move


def test_what_the_plan_gives_to_its_own_processor_is_not_handed_over():
    """Another one has it in the records, and the renewal of the lease has no known outcome."""
    rules = replace(RULES, placement=Ordinal(), facts=MemberFacts(ordinal=0))
    seen = listing("0:b* 1:me 2:b 3:b", "me/Ordinal/0 b/Ordinal/1", rules)
    doubtful = {p: replace(lease, is_doubtful=True) for p, lease in seen.leases.items()}

    done = after(replace(seen, leases=doubtful), rules, lasting_s=1.0)

    assert done.plan.owner_by_partition["0"] == "me"
    assert described(done) == "renew 0"


@pytest.mark.parametrize(
    ("partitions", "members", "unplaced"),
    [
        ("0:me 1", "me/Weighted", {"1"}),
        ("0:me 1", "me/Weighted b/Weighted", set()),
        ("0:me 1", "me/Weighted b/app.Own c/app.Own", set()),
        ("0:me 1", "me=leaving/Weighted", set()),
    ],
    ids=["too few places", "enough", "the plan is not known", "nobody stays"],
)
def test_resources_are_unplaced_only_by_a_plan_with_too_few_places(partitions, members, unplaced):
    """This processor has a capacity of 1; what is free without a plan is not counted."""
    rules = replace(RULES, placement=Weighted(), facts=MemberFacts(capacity=1))

    assert (
        after(listing(partitions, members, rules), rules, lasting_s=1.0).plan.unplaced == unplaced
    )


def test_a_hand_over_is_accepted_by_members_with_a_share_that_hand_over():
    """Not by this processor itself, one that leaves or waits, and a foreign one."""
    seen = listing("0:me 1:e 2:x", "me@1 e@1 c~@1 d=leaving@1 f=standby@2 b@1")

    assert after(seen, RULES, lasting_s=1.0).others == ("b", "e")


def test_a_listing_older_than_the_lease_contradicts_nothing():
    """The write was answered after the listing had been requested."""
    seen = replace(listing("0:b*", "me b"), asked_at_s=BEGIN_S - 2)

    assert described(decide(polled(UNPOLLED, seen, RULES, BEGIN_S), RULES)) == "rest"


def test_a_listing_older_than_the_own_record_shows_nothing_of_it():
    """A record that was written a moment ago is not written again."""
    seen = listing("0:me", "me=standby", own="me")
    newer = replace(seen, own=replace(seen.own, answered_at_s=BEGIN_S + 1))

    assert described(decide(polled(UNPOLLED, seen, RULES, BEGIN_S), RULES)) == "write active"
    assert described(decide(polled(UNPOLLED, newer, RULES, BEGIN_S), RULES)) == "rest"


def test_after_an_outage_no_owner_is_dead_and_nothing_is_late():
    """Each has time to renew, and a whole ``handoff_timeout`` again."""
    owned, overdue = listing("0:me 1:b!", "me b!"), listing("0:b 1:b", "me b", own="me")
    gap_s = RULES.expiration.total_seconds()

    for seen in (owned, overdue):
        memory = polled(UNPOLLED, seen, RULES, BEGIN_S)
        memory = polled(memory, seen, RULES, BEGIN_S + gap_s)
        assert not decide(memory, RULES).moves.claims
        assert decide(memory, RULES).moves.steal is None

    memory = polled(UNPOLLED, owned, RULES, BEGIN_S)
    memory = polled(memory, owned, RULES, BEGIN_S + gap_s)
    for later_s in (11.0, 22.0, 23.0):
        memory = polled(memory, owned, RULES, BEGIN_S + gap_s + later_s)
    assert described(decide(memory, RULES)) == "claim 1"


@pytest.mark.parametrize(
    ("before", "then"),
    [
        ("me/Weighted b/Weighted", "me/Weighted b/Weighted/x3"),
        ("me/Weighted b/Weighted/x3", "me/Weighted b/Weighted/x3/<2"),
        ("me/Weighted b/Weighted", "me/Weighted b/Ring"),
    ],
    ids=["weight", "capacity", "placement"],
)
def test_members_that_change_what_the_plan_depends_on_are_a_new_membership(before, then):
    """Others may not have read it yet; nothing begins until the membership has lasted."""
    rules = replace(RULES, placement=Weighted())
    partitions = "0:me 1:me 2:me 3"
    earlier, later = (listing(partitions, members, rules) for members in (before, then))
    memory = polled(UNPOLLED, earlier, rules, BEGIN_S)
    lasted = polled(memory, earlier, rules, BEGIN_S + 10)
    changed = polled(lasted, later, rules, BEGIN_S + 20)
    settled = polled(changed, later, rules, BEGIN_S + 21)

    assert described(decide(changed, rules)) in {"wait", "rest"}
    assert changed.membership is not None
    assert changed.membership.since_s == BEGIN_S + 20
    assert settled.membership == replace(changed.membership, seen_s=BEGIN_S + 21)


def test_a_weight_that_changed_moves_partitions_when_it_has_lasted():
    """At the first poll that shows it, this processor waits."""
    rules = replace(RULES, placement=Weighted())
    earlier = listing("0:me 1:me 2:b 3:b", "me/Weighted b/Weighted", rules)
    later = listing("0:me 1:me 2:b 3:b", "me/Weighted b/Weighted/x3", rules)
    memory = polled(UNPOLLED, earlier, rules, BEGIN_S)
    memory = polled(memory, earlier, rules, BEGIN_S + 10)
    changed = polled(memory, later, rules, BEGIN_S + 20)
    lasted = polled(changed, later, rules, BEGIN_S + 21)

    assert described(decide(memory, rules)) == "rest"
    assert described(decide(changed, rules)) == "wait"
    assert described(decide(lasted, rules)).startswith("drain ")
