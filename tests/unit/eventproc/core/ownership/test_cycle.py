"""Given this listing, what does a processor write? Each situation is one line."""

from dataclasses import replace
from datetime import timedelta

import pytest

from eventproc.core.ownership.cycle import decide, unfenced
from eventproc.core.ownership.listing import Listing
from eventproc.core.ownership.memory import GroupMemory, needs_ownership, observe
from eventproc.core.placement.ordinal import Ordinal
from eventproc.core.placement.rank import rank
from eventproc.core.placement.state import MemberFacts
from eventproc.core.placement.weighted import Weighted
from eventproc.models import LeaseMode
from tests.unit.eventproc.core.ownership.listings import (
    BEGIN_S,
    NOW,
    RULES,
    actions,
    after,
    described,
    listing,
)
from tests.unit.eventproc.core.ownership.situations import SITUATIONS


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
    memory = observe(GroupMemory(), seen, RULES, BEGIN_S)
    memory = observe(memory, seen, RULES, BEGIN_S + 1)
    again = observe(memory, replace(seen, leases=doubtful), RULES, BEGIN_S + 2)

    assert described(decide(memory, RULES)) == "renew 2"
    assert described(decide(again, RULES)) == f"renew 2, {moved}"


@pytest.mark.parametrize(
    ("partitions", "own", "fenced", "not_fenced"),
    [
        ("0:me 1:me 2:me 3:b", "me", "drain 1 for c", "wait"),
        ("0:me 1:me> 2:me 3:b", "me", "drain 1 for c", "drain 1 for c"),
        ("0:me 1:me? 2:me 3:b", "me", "transfer 1 to c", "wait"),
        ("0:me 1:me ~2:me 3:b", "me", "drain 2 for None", "drain 2 for None"),
        (
            "0:me 1:me 3:b",
            "me=leaving",
            "drain 0 for c, drain 1 for c",
            "drain 0 for c, drain 1 for c",
        ),
    ],
)
def test_no_hand_over_begins_without_a_member_that_was_not_fenced(
    partitions, own, fenced, not_fenced
):
    """The plan counted it as dead. What has begun goes on, and one that leaves gives all up."""
    rules = replace(RULES, lease_mode=LeaseMode.SESSION)
    seen, memory = listing(partitions, f"{own} b! c", rules), GroupMemory()
    for at_s in (BEGIN_S, BEGIN_S + 1):
        memory = observe(memory, seen, rules, at_s)
    done = decide(memory, rules)
    assert [m.owner_id for m in done.fenced] == ["b"]

    def given(done):
        return described(replace(done, fenced=(), moves=replace(done.moves, claims=())))

    assert given(done) == fenced
    assert given(unfenced(done, memory)) == not_fenced


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

    assert done.owner_by_partition["0"] == "me"
    assert described(done) == "renew 0"


@pytest.mark.parametrize(
    ("partitions", "mode", "is_renewed"),
    [
        ("0:me 1:b", LeaseMode.PARTITION, True),
        ("0:me 1:b", LeaseMode.SESSION, False),
        ("0:me 1:x", LeaseMode.SESSION, True),
    ],
)
def test_each_record_is_renewed_without_session_leases_and_beside_a_foreign_member(
    partitions, mode, is_renewed
):
    """An Azure SDK processor reads no member records: it would take over what is not renewed."""
    rules = replace(RULES, lease_mode=mode)

    done = after(listing(partitions, "me b", rules), rules, lasting_s=1.0)

    assert done.renews_records is is_renewed


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

    assert after(listing(partitions, members, rules), rules, lasting_s=1.0).unplaced == unplaced


def test_a_hand_over_is_accepted_by_members_with_a_share_that_hand_over():
    """Not by this processor itself, one that leaves or waits, and a foreign one."""
    seen = listing("0:me 1:e 2:x", "me@1 e@1 c~@1 d=leaving@1 f=standby@2 b@1")

    assert after(seen, RULES, lasting_s=1.0).others == ("b", "e")


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


@pytest.mark.parametrize(("before", "then"), [("me b c", "me b c!"), ("me b c!", "me b c")])
def test_ownership_is_read_when_a_member_without_partitions_dies_or_lives_again(before, then):
    """Nobody has to fence it, but the plan is for other members."""
    rules = replace(RULES, lease_mode=LeaseMode.SESSION)
    seen, later = (listing("0:me 1:b", members, rules) for members in (before, then))
    memory = observe(GroupMemory(), seen, rules, BEGIN_S)

    assert not needs_ownership(memory, seen, rules, BEGIN_S + 1)
    assert needs_ownership(memory, later, rules, BEGIN_S + 1)


@pytest.mark.parametrize(
    ("partitions", "members"),
    [
        ("0:me 1", "me"),
        ("0:me 1:x", "me"),
        ("0:me> 1:b", "me b"),
        ("0:b* 1:b", "me b"),
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


@pytest.mark.parametrize(("age_s", "is_read"), [(70, False), (76, True)])
def test_ownership_is_read_when_the_member_with_the_duty_to_fence_did_not_act_in_time(
    age_s, is_read
):
    """A quarter of the expiration after the silence began, also if nothing else has changed."""
    rules = replace(RULES, lease_mode=LeaseMode.SESSION)
    fresh = listing("0:me 1:b 2:c", "me b c", rules)
    assert rank("c") < rank("me")

    def silent(for_s: float) -> Listing:
        return replace(
            fresh,
            present=replace(
                fresh.present,
                members=tuple(
                    replace(m, last_modified=NOW - timedelta(seconds=for_s))
                    if m.owner_id == "b"
                    else m
                    for m in fresh.present.members
                ),
            ),
        )

    memory = observe(GroupMemory(), silent(61), rules, BEGIN_S)

    assert described(decide(memory, rules)) == "rest"
    assert needs_ownership(memory, silent(age_s), rules, BEGIN_S + age_s - 61) == is_read


def test_ownership_is_read_while_a_former_process_may_hand_over():
    """A process that starts replaces the member record of a leaving one with its owner id."""
    rules = replace(RULES, lease_mode=LeaseMode.SESSION)
    left = listing("0:me 1:b", "me b=leaving", rules)
    seen = listing("0:me 1:b", "me b#2", rules)
    before = observe(GroupMemory(), left, rules, BEGIN_S)
    memory = observe(before, seen, rules, BEGIN_S + 1)
    late = memory
    for after_s in (21, 41, 61, 62):
        assert needs_ownership(late, seen, rules, BEGIN_S + after_s)
        late = observe(late, seen, rules, BEGIN_S + after_s)

    assert described(decide(memory, rules)) == "rest"
    assert not needs_ownership(late, seen, rules, BEGIN_S + 63)


def test_ownership_is_read_again_after_a_hand_over():
    """Its last write may have no known outcome; then the lease is still there."""
    rules = replace(RULES, lease_mode=LeaseMode.SESSION)
    begun, ended = (listing(partitions, "me b", rules) for partitions in ("0:me> 1:b", "0:me 1:b"))
    memory = observe(GroupMemory(), begun, rules, BEGIN_S)

    assert described(decide(memory, rules)) == "rest"
    assert needs_ownership(memory, ended, rules, BEGIN_S + 1)
    assert not needs_ownership(
        observe(memory, ended, rules, BEGIN_S + 1), ended, rules, BEGIN_S + 2
    )


def test_ownership_is_read_until_the_grace_after_an_outage_is_over():
    """A member that did not renew may have died; no record changes when that becomes certain."""
    rules = replace(RULES, lease_mode=LeaseMode.SESSION)
    seen = listing("0:me 1:b", "me b", rules)
    memory = observe(GroupMemory(), seen, rules, BEGIN_S)
    for at_s in (61, 71):
        memory = observe(memory, seen, rules, BEGIN_S + at_s)
        assert needs_ownership(memory, seen, rules, BEGIN_S + at_s + 1)
    memory = observe(memory, seen, rules, BEGIN_S + 81)

    assert not needs_ownership(memory, seen, rules, BEGIN_S + 82)


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
