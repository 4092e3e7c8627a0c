"""Which published plan is followed, who leads, and what is published."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.ownership.cycle import decide
from eventproc._core.ownership.memory import GroupMemory
from eventproc._core.ownership.published_plans import highest, leader
from eventproc._core.placement.even import Even
from eventproc._core.placement.published import Published, Unavailable
from eventproc._core.placement.published_plan import PublishedPlan, StoredPlan
from eventproc._core.placement.ring import Ring
from tests.unit.eventproc._core.ownership.listings import (
    BEGIN_S,
    NOW,
    RULES,
    UNPOLLED,
    actions,
    described,
    listing,
    member,
    polled,
    published,
)

RULES_P = replace(RULES, placement=Published(Even()))
PARTITIONS = ("0", "1", "2", "3")
OTHERS = ("a", "b", "z")
NOW_MS = int(NOW.timestamp() * 1000)

partitions = st.tuples(
    *(st.sampled_from(["", ":me", *(f":{o}" for o in OTHERS)]) for _ in range(4))
)
others = st.sets(st.sampled_from(OTHERS))
numbers = st.integers(1, 9)
plans = st.tuples(*(st.sampled_from(["me", *OTHERS, "-"]) for _ in range(4)))
stored = st.builds(
    lambda number, by, plan: published(
        f"{number} {by} " + " ".join(map(":".join, zip(PARTITIONS, plan, strict=True)))
    ),
    numbers,
    st.sampled_from(["me", *OTHERS]),
    plans,
) | st.just(published(""))
NEW = {"lasting_s": 0.0}
PUBLISHED = {"placement": Published(Even())}


def seen(owned, present, found: StoredPlan | None):
    """Return a listing of four partitions, and members that follow a published plan."""
    text = " ".join(p + owner for p, owner in zip(PARTITIONS, owned, strict=True))
    return listing(text, " ".join(f"{m}/P" for m in ["me", *present]), RULES_P, stored=found)


def watched(listings) -> GroupMemory:
    """Return what is remembered of these listings, each of which lasts for a while."""
    memory, at_s = UNPOLLED, BEGIN_S
    for each in listings:
        for _ in range(2):
            memory, at_s = polled(memory, each, RULES_P, at_s), at_s + 1
    return memory


@given(st.lists(stored, min_size=1))
def test_no_number_is_followed_after_a_higher_one(records):
    """Whatever an operator deletes or restores: the highest one that was seen counts."""
    memory, followed = UNPOLLED, []
    for at_s, found in enumerate(records):
        memory = polled(memory, seen([""] * 4, OTHERS, found), RULES_P, BEGIN_S + at_s)
        followed.append(memory.published.number if memory.published else 0)

    assert followed == sorted(followed)
    assert followed[-1] == max((r.published.number if r.published else 0) for r in records)


@given(partitions, others, stored)
def test_what_is_published_is_a_whole_plan_with_a_higher_number(owned, present, found):
    """For all partitions and members, and only on the etag that was read."""
    memory = watched([seen(owned, present, found)])
    publish = decide(memory, RULES_P).publish
    if publish is None:
        return

    assert publish.etag == found.etag
    assert publish.published.number >= NOW_MS
    assert publish.published.covers(PARTITIONS, {"me", *present})
    assert set(publish.published.owner_by_resource.values()) <= {"me", *present}


@given(partitions, others, stored)
def test_a_published_plan_is_not_published_again(owned, present, found):
    """When it is stored, the leader has nothing to change, however much of it was carried out."""
    first = seen(owned, present, found)
    publish = decide(watched([first]), RULES_P).publish
    if publish is None:
        return
    written = StoredPlan(etag="new", published=publish.published)
    later = watched([first, replace(first, published=written)])

    assert decide(later, RULES_P).publish is None


@given(partitions, others, stored)
def test_just_one_member_leads(owned, present, found):
    """All members that read the same records find the same leader."""
    known = highest(None, found)
    members = {m: member(f"{m}/P") for m in ["me", *present]}
    expected = leader(members, known)
    publishes = decide(watched([seen(owned, present, found)]), RULES_P).publish is not None

    assert expected in members
    assert not publishes or expected == "me"


def test_a_leader_that_started_anew_is_another_process():
    """Its former process may still be there, suspended."""
    known = PublishedPlan(
        number=1, leader="b", incarnation="1", placement="P", members=(), owner_by_resource={}
    )
    old, new = member("b/P"), member("b#2/P")
    a = member("a/P")

    assert leader({"a": a, "b": old}, known) == "b"
    assert leader({"a": a, "b": new}, known) == "a"
    assert leader({"a": a}, known) == "a"
    assert leader({}, known) is None


@given(partitions, others, plans)
def test_what_the_plan_does_not_cover_stays_as_it_is(owned, present, plan):
    """Partitions planned for a member that is not there keep their live owner, or none."""
    text = " ".join(map(":".join, zip(PARTITIONS, plan, strict=True)))
    memory = watched([seen(owned, present, published(f"5 me {text}"))])
    live = memory.group.live_owner_by_partition
    for p, planned in zip(PARTITIONS, plan, strict=True):
        expected = planned if planned in {"me", *present} else live.get(p)

        # A live owner without a record is foreign: then the group follows Even.
        if memory.group.followers == memory.group.sharing:
            assert decide(memory, RULES_P).plan.owner_by_partition.get(p) == expected


def publishing(stored: str, **changed: Any) -> dict[str, Any]:
    """Return the changes for a group that follows ``Published:Even``, and this published plan."""
    return {**PUBLISHED, "stored": stored, **changed}


# P is Published:Even; of 0 and 1, Even gives me 1 and z 0.
SITUATIONS = {
    "the first plan": ("0 1", "me/P z/P", publishing(""), "publish 0:z 1:me"),
    "the first plan, new membership": ("0 1", "me/P z/P", publishing("", **NEW), "wait"),
    "I carry it out": ("0 1", "me/P b/P", publishing("5 me 0:me 1:b"), "claim 0"),
    "a plan of another leader": (
        "0 1",
        "me/P b/P",
        publishing("5 b 0:me 1:b"),
        "claim 0",
    ),
    "a new number": ("0 1", "me/P b/P", publishing("5 me 0:me 1:b", **NEW), "wait"),
    "surplus": ("0:me 1:me", "me/P b/P", publishing("5 b 0:me 1:b"), "drain 1 for b"),
    "carried out": ("0:me 1:b", "me/P b/P", publishing("5 b 0:me 1:b"), "rest"),
    "it is as uneven as the leader wants": (
        "0:me 1:me",
        "me/P b/P",
        publishing("5 b 0:me 1:me :b"),
        "rest",
    ),
    "a member before me may lead": ("0 1", "me/P a/P", publishing(""), "wait"),
    "one before me has another placement": (
        "0 1",
        "me/P a z/P",
        publishing(""),
        "publish 0:z 1:a",
    ),
    "a member joins, I lead": (
        "0:me 1:me",
        "me/P b/P",
        publishing("5 me 0:me 1:me"),
        "publish 0:me 1:b",
    ),
    "a member joins, another leads": (
        "0:b 1:b",
        "me/P b/P",
        publishing("5 b 0:b 1:b"),
        "wait",
    ),
    "a resource comes": (
        "0:me 1",
        "me/P",
        publishing("5 me 0:me"),
        "publish 0:me 1:me",
    ),
    "a member is gone, I lead": (
        "0:me 1:b!",
        "me/P b!/P",
        publishing("5 me 0:me 1:b"),
        "publish 0:me 1:me",
    ),
    "the leader is gone": (
        "0:me 1:b!",
        "me/P b!/P",
        publishing("5 b 0:me 1:b"),
        "publish 0:me 1:me",
    ),
    "the leader started anew, the plan is the same": (
        "0:me 1:b",
        "me/P b#2/P",
        publishing("5 b 0:me 1:b"),
        "rest",
    ),
    "the leader leaves": (
        "0:me 1:b",
        "me/P b=leaving/P",
        publishing("5 b 0:me 1:b"),
        "publish 0:me 1:me",
    ),
    "I leave": (
        "0:me 1:b",
        "me=leaving/P b/P",
        publishing("5 b 0:b 1:b"),
        "drain 0 for b",
    ),
    "I leave, and the plan is as uneven as the leader wants": (
        "0:me 1:me",
        "me=leaving/P b/P c/P",
        publishing("5 b 0:b 1:b :c"),
        "drain 0 for b, drain 1 for b",
    ),
    "I leave, and no plan without me is published": (
        "0:me 1:b",
        "me=leaving/P b/P",
        publishing("5 b 0:me 1:b"),
        "drain 0 for b",
    ),
    "I leave, and cannot compute it": (
        "0:me 1:b",
        "me=leaving/P b/P",
        {"placement": Published(Unavailable("Even")), "stored": "5 b 0:me 1:b"},
        "drain 0 for None",
    ),
    "by another placement than now": (
        "0:me 1:z",
        "me/Published:Ring z/Published:Ring",
        {"placement": Published(Ring()), "stored": "5 me 0:me 1:z"},
        "publish 0:z 1:me",
    ),
    "by another placement than now, and another leads": (
        "0 1",
        "me/Published:Ring a/Published:Ring",
        {"placement": Published(Ring()), "stored": "5 a 0:me 1:me :a"},
        "wait",
    ),
    "a resource comes, another leads": ("0:b 1", "me/P b/P", publishing("5 b 0:b :me"), "wait"),
    "I would lead, and cannot compute the plan": (
        "0 1",
        "me/P z/P",
        {"placement": Published(Unavailable("Even")), "stored": ""},
        "wait",
    ),
    "most have Even": ("0 1 2 3", "me/P b c", publishing("5 me 0:me"), "claim 3"),
    "a foreign member": ("0:x 1", "me/P", publishing("5 me 0:me 1:me"), "claim 1"),
    "no place for one": (
        "0:me 1",
        "me/P",
        publishing("5 me 0:me 1:-"),
        "publish 0:me 1:me",
    ),
    "it cannot be read": ("0:me 1", "me/P", PUBLISHED, "wait"),
    "a member joins, and a lease of mine is contradicted": (
        "0:me 1:b*",
        "me/P b/P",
        publishing("5 me 0:me 1:me"),
        "renew 1",
    ),
}


@pytest.mark.parametrize(
    ("partitions", "members", "changed", "written"), SITUATIONS.values(), ids=SITUATIONS
)
def test_a_listing_and_a_plan_give_these_actions(partitions, members, changed, written):
    """Each situation names the partitions, the members, what is changed, and the actions."""
    assert actions(partitions, members, **changed) == written


CHANGES = {
    "members, and I am given something": (
        ("0 1:b", "me/P b/P", "5 b 0:me 1:b"),
        ("0 1:b", "me/P b/P c/P", "5 b 0:me 1:b"),
        "claim 0",
        "claim 0",
    ),
    "members, and I lead": (
        ("0:me 1:me", "me/P", "5 me 0:me 1:me"),
        ("0:me 1:me", "me/P b/P", "5 me 0:me 1:me"),
        "wait",
        "publish 0:me 1:b",
    ),
    "the published plan, and I am given something": (
        ("0 1:b", "me/P b/P", "5 b 0:b 1:b :me"),
        ("0 1:b", "me/P b/P", "6 b 0:me 1:b"),
        "wait",
        "claim 0",
    ),
    "the published plan, and I lead": (
        ("0:me 1:b", "me/P b/P", "5 me 0:me 1:b"),
        ("0:me 1:b", "me/P b/P", "6 me 0:me 1:b :c"),
        "wait",
        "publish 0:me 1:b",
    ),
    "the placement, and there is no published plan any more": (
        ("0 1 2 3", "me/P b/P c/P", "5 b 0:b 1:b 2:c 3:c :me"),
        ("0 1 2 3", "me/P b c", "5 b 0:b 1:b 2:c 3:c :me"),
        "wait",
        "claim 3",
    ),
}


@pytest.mark.parametrize(("before", "then", "at_once", "settled"), CHANGES.values(), ids=CHANGES)
def test_a_change_of_members_or_plan_gives_these_actions(before, then, at_once, settled):
    """Members that follow one published plan agree, whichever members each of them has read."""
    earlier, later = (
        listing(partitions, members, RULES_P, stored=published(stored))
        for partitions, members, stored in (before, then)
    )
    changed = polled(watched([earlier]), later, RULES_P, BEGIN_S + 2)

    assert described(decide(changed, RULES_P)) == at_once
    assert decide(changed, RULES_P).stable_in_s == pytest.approx(0.2)
    assert described(decide(watched([earlier, later]), RULES_P)) == settled


@pytest.mark.parametrize(
    ("stored", "unplaced"), [("5 me 0:me 1:-", {"1"}), ("5 me 0:me", set()), ("", set())]
)
def test_what_the_plan_gives_to_no_member_is_unplaced(stored, unplaced):
    """Not what it does not name."""
    memory = watched([listing("0:me 1", "me/P", RULES_P, stored=published(stored))])

    assert decide(memory, RULES_P).plan.unplaced == unplaced


@pytest.mark.parametrize("now", ["2000000000000 b 0:me 1:b", "", "7 b 0:me 1:b"])
def test_a_plan_has_a_higher_number_than_each_that_was_seen(now):
    """Also above the store's time, and if that plan was deleted or replaced by an old one."""
    text = ["2000000000000 b 0:me 1:b", now]
    listings = [listing("0:me 1:me", "me/P", RULES_P, stored=published(each)) for each in text]
    publish = decide(watched(listings), RULES_P).publish

    assert publish is not None
    assert publish.published.number == 2000000000001
