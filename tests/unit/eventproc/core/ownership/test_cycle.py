"""Given this listing, what does a processor write? Each situation is one line."""

from dataclasses import replace
from datetime import timedelta

import pytest

from eventproc.core.ownership.cycle import decide
from eventproc.core.ownership.memory import GroupMemory, needs_ownership, observe
from eventproc.core.placement.ordinal import Ordinal
from eventproc.core.placement.ring import Ring
from eventproc.core.placement.state import MemberFacts
from eventproc.core.placement.weighted import Weighted
from eventproc.models import LeaseMode, LoadBalancingStrategy
from tests.unit.eventproc.core.ownership.listings import (
    BEGIN_S,
    NOW,
    RULES,
    actions,
    described,
    listing,
)

BALANCED = {"strategy": LoadBalancingStrategy.BALANCED}
GREEDY = {"strategy": LoadBalancingStrategy.GREEDY}
SESSION = {"lease_mode": LeaseMode.SESSION}
NEW = {"lasting_s": 0.0}
LATE = {"lasting_s": 31.0, "own": "me"}
DUE = {"lasting_s": 20.0, "own": "me"}
WAITED = {"lasting_s": 301.0}
RELEASE = {"strategy": LoadBalancingStrategy.RELEASE}
RING = {"placement": Ring()}
WEIGHTED = {"placement": Weighted()}
ONE = {**WEIGHTED, "facts": MemberFacts(capacity=1)}
FIRST = {"placement": Ordinal(), "facts": MemberFacts(ordinal=0)}
SECOND = {"placement": Ordinal(), "facts": MemberFacts(ordinal=1)}

CLAIM_ALL = "claim 0, claim 1, claim 2, claim 3"

SITUATIONS = {
    # Claims.
    "nothing to change": ("0:me 1:b", "me b", {}, "rest"),
    "never owned": ("0 1", "me", {}, "claim 0, claim 1"),
    "released": ("0:me 1:-", "me", {}, "claim 1"),
    "expired": ("0:me 1:b!", "me", {}, "claim 1"),
    "expired, and planned for another": ("0:me 1:me 2:b 3:x!", "me b", {}, "rest"),
    "recorded as mine, no lease": ("0:me? 1:b", "me b", {}, "check owner id, claim 0"),
    "held, and its record expired": ("0:me! 1:b", "me b", {}, "rest"),
    "BALANCED: one claim": ("0 1 2", "me~", BALANCED, "claim 2"),
    "BALANCED: all that is recorded as mine": (
        "0:me? 1:me? 2",
        "me~",
        BALANCED,
        "check owner id, claim 0, claim 1, claim 2",
    ),
    "new membership": ("0 1", "me", NEW, "wait"),
    "new membership, recorded as mine": ("0:me? 1", "me", NEW, "check owner id, claim 0"),
    # Steals.
    "cooperative owner, at once": ("0:b 1:b", "me b", {}, "wait"),
    "cooperative owner, overdue": ("0:b 1:b", "me b", LATE, "write active, steal 1"),
    "owner without hand-over": ("0:b 1:b", "me b~", {}, "steal 1"),
    "foreign owner": ("0:x 1:x", "me", {}, "steal 1"),
    "foreign owner, new membership": ("0:x 1:x", "me", NEW, "wait"),
    "leaving owner": ("0:b", "me b=leaving", {}, "wait"),
    "leaving owner, overdue": ("0:b", "me b=leaving", LATE, "write active, steal 0"),
    "BALANCED: a claim comes before a steal": ("0:b 1:b 2", "me~ b~", BALANCED, "claim 2"),
    # Hand-overs.
    "surplus": ("0:me 1:me", "me b", {}, "drain 1 for b"),
    "surplus, new membership": ("0:me 1:me", "me b", {"lasting_s": 0.0}, "wait"),
    "surplus, begun": ("0:me 1:me>", "me b", NEW, "drain 1 for b"),
    "surplus for a member without hand-over": ("0:me 1:me", "me b~", {}, "drain 1 for b"),
    "surplus for a foreign member": ("0:me 1:me 2:x", "me", {}, "rest"),
    "GREEDY: surplus stays": ("0:me 1:me", "me~ b~", GREEDY, "rest"),
    "a foreign member does not claim its share": ("0:me 1 2:x 3", "me", LATE, "claim 1, claim 3"),
    # Leaving.
    "I leave": ("0:me 1:b", "me=leaving b", {}, "drain 0 for b"),
    "I leave, and my record does not say so": (
        "0:me 1:b",
        "me b",
        {"own": "me=leaving"},
        "write leaving, drain 0 for b",
    ),
    "I leave alone": ("0:me 1", "me=leaving", {}, "drain 0 for None"),
    "I leave, recorded as mine, no lease": ("0:me? 1:b", "me=leaving b", {}, "transfer 0 to b"),
    "GREEDY: I leave": ("0:me 1:b", "me~=leaving b~", GREEDY, "drain 0 for None"),
    # The own member record.
    "it is missing": ("0:me", "b=leaving", {"own": "me"}, "write active"),
    "it is due, and I own nothing": ("0:b", "me b", DUE, "write active"),
    "it is due, and I own something": ("0:me 1:b", "me b", DUE, "rest"),
    "another processor has my owner id": ("0:me", "me#2", {"own": "me"}, "write active"),
    "it came while I was away": ("0:b", "me#2 b", {"own": "me", "lasting_s": 55.0}, "yield"),
    "I leave, and it came": ("0:b", "me#2 b", {"own": "me=leaving"}, "yield"),
    "I leave and own something, and it came": (
        "0:me",
        "me#2",
        {"own": "me=leaving"},
        "write leaving, drain 0 for None",
    ),
    "it waited for an objection": ("0:me", "me!#2", {"own": "me"}, "yield"),
    # Standby.
    "standby, nobody to replace": ("0:b", "me=standby@2 b@2", {}, "write active"),
    "standby, no vacancy": ("0:b 1:b", "me=standby@2 b@1", {}, "rest"),
    "standby, a vacancy": ("0:b 1", "me=standby@2 b@1 c=leaving@1", {}, "claim 1"),
    "standby that fills a vacancy": ("0:b 1:b 2:me 3", "me=standby@2 b@1", {}, "claim 3"),
    "standby that has replaced": ("0:b 1:me", "me=standby@2 b@1", {}, "write active"),
    "standby, time-out": ("0:b", "me=standby@2 b@1", WAITED, "write active"),
    # Other members' records.
    "a member of long ago": ("0:me", "me b!!", {}, "forget b"),
    "a member of long ago that owns something": ("0:me 1:b", "me b!!", {}, "rest"),
    # A listing that contradicts a lease.
    "stolen": ("0:me 1:b* 2", "me b", {}, "renew 1"),
    "stolen, and recorded as mine": (
        "0:me? 1:b* 2",
        "me b",
        {},
        "renew 1, check owner id, claim 0",
    ),
    # Session leases.
    "session: silent owner": ("0:b 1:me", "me b!", SESSION, "fence b, claim 0"),
    "session: silent member without partitions": ("0:me", "me b!", SESSION, "rest"),
    "session: fenced owner": ("0:b! 1:me", "me b=dead", SESSION, "claim 0"),
    "session: claimed after it was fenced": ("0:b 1:me", "me b=dead", SESSION, "rest"),
    "session: an owner without a member record": ("0:b! 1:me", "me", SESSION, "rest"),
    "session: without one for an expiration": (
        "0:b! 1:me",
        "me",
        {**SESSION, "lasting_s": 82.0},
        "claim 0",
    ),
    "session: I was fenced": (
        "0:me 1",
        "me=dead",
        {**SESSION, "own": "me"},
        "lose all, write active",
    ),
    "session: my record is missing": (
        "0:me",
        "b",
        {**SESSION, "own": "me"},
        "lose all, write active",
    ),
    # Placements. Of 0 to 3, Even gives me 1 and 3 beside b, and 3 beside b and c; Ring gives me
    # 0 and 2 beside b, and 2 beside b and c.
    "all have Even": ("0 1 2 3", "me b c", {}, "claim 3"),
    "all have Ring": ("0 1 2 3", "me/Ring b/Ring c/Ring", RING, "claim 2"),
    "most have Ring": ("0 1 2 3", "me b/Ring c/Ring", {}, "claim 2"),
    "most have Even": ("0 1 2 3", "me/Ring b c", RING, "claim 3"),
    "as many have Even as Ring": ("0 1 2 3", "me/Ring b", RING, "claim 1, claim 3"),
    "a member that leaves does not count": ("0 1 2 3", "me/Ring b=leaving", RING, CLAIM_ALL),
    "most have one that I lack: free": ("0:me 1 2:b!", "me b/app.Own c/app.Own", {}, "rest"),
    "most have one that I lack: surplus": ("0:me 1:me", "me b/app.Own c/app.Own", {}, "rest"),
    "most have one that I lack: I leave": (
        "0:me 1:b",
        "me=leaving b/app.Own c/app.Own",
        {},
        "drain 0 for None",
    ),
    "one has one that I lack": ("0 1 2 3", "me b c/app.Own", {}, "claim 3"),
    "Ring, and a foreign member: Even": ("0:x 1 2 3", "me/Ring b/Ring", RING, "claim 3"),
    "heavier than I": (
        "0:me 1:me 2:me 3:b",
        "me/Weighted b/Weighted/x3",
        WEIGHTED,
        "drain 0 for b, drain 1 for b",
    ),
    "Even does not regard weights": ("0:me 1:me 2:b 3:b", "me b/Even/x3", {}, "rest"),
    "I am full": ("0:me 1", "me/Weighted", ONE, "rest"),
    "I have more than my capacity, and a place is left": (
        "0:me 1:me",
        "me/Weighted b/Weighted/<1",
        ONE,
        "drain 1 for b",
    ),
    "I have more than my capacity, and no place is left": (
        "0:me 1:me 2:b",
        "me/Weighted b/Weighted/<1",
        ONE,
        "rest",
    ),
    "too few places: the free one, not another's": (
        "0:b 1:b 2:b 3",
        "me/Weighted b/Weighted/<1",
        ONE,
        "claim 3",
    ),
    "RELEASE: surplus": ("0:me 1:me", "me b", RELEASE, "drain 1 for None"),
    "RELEASE: another's surplus": ("0:b 1:b", "me b", RELEASE, "wait"),
    "RELEASE: it was released": ("0:b 1:-", "me b", RELEASE, "claim 1"),
    "RELEASE: it was not released in time": (
        "0:b 1:b",
        "me b",
        {**RELEASE, **LATE},
        "write active, steal 1",
    ),
    "RELEASE: I leave": ("0:me 1:b", "me=leaving b", RELEASE, "drain 0 for None"),
    "RELEASE: surplus for a foreign member": ("0:me 1:me 2:x", "me", RELEASE, "rest"),
    "Ordinal: its neighbour is away": ("0:me 1:me 2 3", "me/Ordinal/0", FIRST, "claim 2, claim 3"),
    "Ordinal: I return": ("0:b 1:b 2:b 3:b", "me/Ordinal/0 b/Ordinal/1", FIRST, "wait"),
    "Ordinal: its neighbour returns": (
        "0:me 1:me 2:me 3:me",
        "me/Ordinal/1 b/Ordinal/0",
        SECOND,
        "drain 0 for b, drain 1 for b",
    ),
    "a resource that was deleted": ("0:me ~1:me", "me", {}, "drain 1 for None"),
    "a resource that was deleted, with a strategy that lets nothing go": (
        "0:me ~1:me 2:b ~3:b",
        "me b",
        GREEDY,
        "drain 1 for None",
    ),
    "a resource that was deleted, just after the members changed": (
        "0:me ~1:me",
        "me b",
        NEW,
        "drain 1 for None",
    ),
    "a resource that was deleted, recorded as mine without a lease": (
        "0:me ~1:me?",
        "me",
        {},
        "transfer 1 to None",
    ),
    "a resource that was deleted counts in no share": (
        "0:b 1:b ~2:me ~3:me",
        "me b",
        {},
        "drain 2 for None, drain 3 for None",
    ),
    "Ordinal: what was mine is free again": (
        "0:- 1:- 2:b 3:b",
        "me/Ordinal/0 b/Ordinal/1",
        FIRST,
        "claim 0, claim 1",
    ),
}


@pytest.mark.parametrize(
    ("partitions", "members", "changed", "written"), SITUATIONS.values(), ids=SITUATIONS
)
def test_a_listing_gives_these_actions(partitions, members, changed, written):
    """Each situation names the partitions, the members, what is changed, and the actions."""
    assert actions(partitions, members, **changed) == written


def test_a_contradicted_lease_delays_other_moves_once():
    """If its renewal has no known outcome, the next poll decides as if the listing were right."""
    seen = listing("0:me 1:b* 2:me 3:me", "me b")
    doubtful = {p: replace(lease, is_doubtful=True) for p, lease in seen.leases.items()}
    memory = observe(GroupMemory(), seen, RULES, BEGIN_S)
    memory = observe(memory, seen, RULES, BEGIN_S + 1)
    again = observe(memory, replace(seen, leases=doubtful), RULES, BEGIN_S + 2)

    assert described(decide(memory, RULES)) == "renew 1"
    assert described(decide(again, RULES)) == "renew 1, drain 3 for b"


def test_a_listing_older_than_the_lease_contradicts_nothing():
    """The write was answered after the listing had been requested."""
    seen = replace(listing("0:b*", "me b"), asked_at_s=BEGIN_S - 2)

    assert described(decide(observe(GroupMemory(), seen, RULES, BEGIN_S), RULES)) == "rest"


def test_a_listing_older_than_the_own_record_shows_nothing_of_it():
    """A session that was restored a moment ago is not fenced again."""
    rules = replace(RULES, lease_mode=LeaseMode.SESSION)
    seen = listing("0:me", "me=dead", rules, own="me")
    restored = replace(seen, own=replace(seen.own, answered_at_s=BEGIN_S + 1))

    assert described(decide(observe(GroupMemory(), seen, rules, BEGIN_S), rules)) != "rest"
    assert described(decide(observe(GroupMemory(), restored, rules, BEGIN_S), rules)) == "rest"


def test_a_fenced_member_keeps_what_it_claimed_after_the_members_were_read():
    """Its ownership record is newer than the status *dead* that is about to be written."""
    rules = replace(RULES, lease_mode=LeaseMode.SESSION)
    seen = listing("0:b 1:me", "me b!", rules)
    assert seen.owned is not None
    (record, *others) = seen.owned.ownerships
    newer = replace(record, last_modified=NOW + timedelta(seconds=1))
    later = replace(seen, owned=replace(seen.owned, ownerships=(newer, *others)))
    memory = observe(GroupMemory(), later, rules, BEGIN_S)

    assert described(decide(memory, rules)) == "fence b"


def test_after_an_outage_no_owner_is_dead_and_nothing_is_late():
    """Each has time to renew, and a whole ``handoff_timeout`` again."""
    owned, overdue = listing("0:me 1:b!", "me b!"), listing("0:b 1:b", "me b", own="me")
    gap_s = RULES.expiration.total_seconds()

    for seen in (owned, overdue):
        memory = observe(GroupMemory(), seen, RULES, BEGIN_S)
        memory = observe(memory, seen, RULES, BEGIN_S + gap_s)
        assert not decide(memory, RULES).moves.claims
        assert decide(memory, RULES).moves.steal is None

    memory = observe(GroupMemory(), owned, RULES, BEGIN_S)
    memory = observe(memory, owned, RULES, BEGIN_S + gap_s)
    for later_s in (11.0, 22.0, 23.0):
        memory = observe(memory, owned, RULES, BEGIN_S + gap_s + later_s)
    assert described(decide(memory, RULES)) == "claim 1"


def test_a_cycle_without_ownership_records_writes_only_member_records():
    """The group is as it was; the own record may need a write all the same."""
    rules = replace(RULES, lease_mode=LeaseMode.SESSION)
    seen = listing("0:me 1:b", "me b", rules)
    memory = observe(GroupMemory(), seen, rules, BEGIN_S)
    short = replace(seen, owned=None)
    changed = replace(short, own=replace(seen.own, member=listing("0", "me=leaving").own.member))

    assert not needs_ownership(memory, short, rules, BEGIN_S + 1)
    assert needs_ownership(memory, changed, rules, BEGIN_S + 1)
    assert described(decide(observe(memory, short, rules, BEGIN_S + 1), rules)) == "rest"
    assert described(decide(observe(memory, changed, rules, BEGIN_S + 1), rules)) == "write leaving"


@pytest.mark.parametrize(
    ("partitions", "members"),
    [
        ("0:me 1:b 2", "me b"),
        ("0:me 1:b", "me"),
        ("0:me 1:b", "me b c"),
        ("0:me 1:b", "me b!"),
        ("0:me 1:b", "me b#2"),
        ("0:me 1:b", "me b=leaving"),
        ("0:me? 1:b", "me b"),
        ("0:me> 1:b", "me b"),
    ],
    ids=["grown", "gone", "come", "silent", "started anew", "leaving", "lost", "handing over"],
)
def test_ownership_is_read_when_something_may_have_changed(partitions, members):
    """A processor that changes what others own first changes its member record."""
    rules = replace(RULES, lease_mode=LeaseMode.SESSION)
    memory = observe(GroupMemory(), listing("0:me 1:b", "me b", rules), rules, BEGIN_S)

    assert needs_ownership(memory, listing(partitions, members, rules), rules, BEGIN_S + 1)


@pytest.mark.parametrize(
    ("partitions", "members"),
    [
        ("0:me 1", "me"),
        ("0:me 1:x", "me"),
        ("0:me> 1:b", "me b"),
        ("0:me 1:b*", "me b"),
        ("0:b 1:b", "me=leaving b"),
    ],
    ids=["something to do", "a foreign member", "handing over", "a contradicted lease", "leaving"],
)
def test_ownership_is_read_again_after_a_poll_that_left_something_to_do(partitions, members):
    """Also if the member records are unchanged."""
    rules = replace(RULES, lease_mode=LeaseMode.SESSION)
    seen = listing(partitions, members, rules)
    memory = observe(GroupMemory(), seen, rules, BEGIN_S)

    assert needs_ownership(memory, seen, rules, BEGIN_S + 1)


def test_ownership_is_read_at_least_twice_in_an_expiration():
    """An operator may have changed it; and with leases of records, it is read each time."""
    rules = replace(RULES, lease_mode=LeaseMode.SESSION)
    seen = listing("0:me 1:b", "me b", rules)
    memory = observe(GroupMemory(), seen, rules, BEGIN_S)
    by_records = observe(GroupMemory(), listing("0:me 1:b", "me b"), RULES, BEGIN_S)

    assert not needs_ownership(memory, seen, rules, BEGIN_S + 30)
    assert needs_ownership(memory, seen, rules, BEGIN_S + 30.1)
    assert needs_ownership(by_records, listing("0:me 1:b", "me b"), RULES, BEGIN_S + 1)


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
    memory = observe(GroupMemory(), earlier, rules, BEGIN_S)
    lasted = observe(memory, earlier, rules, BEGIN_S + 10)
    changed = observe(lasted, later, rules, BEGIN_S + 20)
    settled = observe(changed, later, rules, BEGIN_S + 21)

    assert described(decide(changed, rules)) in {"wait", "rest"}
    assert changed.membership is not None
    assert changed.membership.since_s == BEGIN_S + 20
    assert settled.membership == replace(changed.membership, seen_s=BEGIN_S + 21)


def test_a_weight_that_changed_moves_partitions_when_it_has_lasted():
    """At the first poll that shows it, this processor waits."""
    rules = replace(RULES, placement=Weighted())
    earlier = listing("0:me 1:me 2:b 3:b", "me/Weighted b/Weighted", rules)
    later = listing("0:me 1:me 2:b 3:b", "me/Weighted b/Weighted/x3", rules)
    memory = observe(GroupMemory(), earlier, rules, BEGIN_S)
    memory = observe(memory, earlier, rules, BEGIN_S + 10)
    changed = observe(memory, later, rules, BEGIN_S + 20)
    lasted = observe(changed, later, rules, BEGIN_S + 21)

    assert described(decide(memory, rules)) == "rest"
    assert described(decide(changed, rules)) == "wait"
    assert described(decide(lasted, rules)).startswith("drain ")
