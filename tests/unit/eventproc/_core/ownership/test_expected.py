"""Members that a roster names: which of them the plan waits for, and for how long."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.ownership.cycle import decide
from eventproc._core.ownership.members import ExpectedMembers, observe_expected
from eventproc._core.placement.even import Even
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.published import Published
from eventproc._core.placement.schema import StoredSchema
from tests.unit.eventproc._core.ownership.listings import (
    BEGIN_S,
    RULES,
    UNPOLLED,
    listing,
    member,
    polled,
    schema,
)

PATIENCE = timedelta(seconds=30)
RULES_R = replace(RULES, placement=Published(Even()), patience=PATIENCE)
NAMES = ("a", "b", "c")

names = st.frozensets(st.sampled_from(NAMES))
polls = st.lists(st.tuples(names | st.none(), names, st.integers(0, 20)), min_size=1, max_size=12)


def schema_expecting(text, *expected):
    """Return a schema of a leader whose roster named these members."""
    found = schema(text).schema
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


def test_without_an_answer_the_schema_counts():
    """Its members have come, whether they are still there or not."""
    found = schema_expecting("5 a 0:a 1:b", "a", "b", "c")
    known = observe_expected(ExpectedMembers(), None, found, members("a"), 0)

    assert known.names == {"a", "b", "c"}
    assert known.awaited(PATIENCE, 0) == {"c"}


def planned(expected, present="me/P", partitions="0 1 2 3", after_s=0.0, rules=RULES_R):
    """Return what the leader publishes; after some seconds, by partition."""
    seen = replace(listing(partitions, present, rules, stored=schema("")), expected=expected)
    memory = polled(UNPOLLED, seen, rules, BEGIN_S)
    for at_s in range(1, int(after_s) + 3):
        memory = polled(memory, seen, rules, BEGIN_S + at_s)
    publish = decide(memory, rules).publish
    return publish and publish.schema


def test_the_leader_plans_for_those_that_have_not_come():
    """They are no members of the schema, so that their coming asks for the next one."""
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
    found = schema_expecting("5 b 0:me 1:me 2:c 3:c :b", "me", "b", "c")
    stored = StoredSchema(etag="1", schema=found)
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
    found = schema_expecting("5 me 0:me 1:c", "me", "c")
    seen = listing("0:me 1", "me/P", rules, stored=StoredSchema(etag="1", schema=found))
    memory = UNPOLLED
    for at_s in range(3):
        memory = polled(memory, seen, rules, BEGIN_S + at_s)
    publish = decide(memory, rules).publish

    assert publish is not None
    assert publish.schema.expected == ()
    assert set(publish.schema.owner_by_resource.values()) == {"me"}


def test_a_leader_that_waits_polls_as_often_as_one_that_changes_something():
    """Otherwise it would notice late that the patience is over."""
    found = replace(schema_expecting("5 me 0:me 1:c", "me", "c"), members=("me",))
    seen = listing("0:me 1", "me/P", RULES_R, stored=StoredSchema(etag="1", schema=found))
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
    found = replace(schema_expecting(f"5 {leader} 0:me 1:b", *expected), members=("b", "me"))
    stored = StoredSchema(etag="1", schema=found)
    seen = listing("0:me 1:b", "me/P b/P", RULES_R, stored=stored)
    memory = UNPOLLED
    for at_s in range(3):
        memory = polled(
            memory, replace(seen, expected=frozenset(expected)), RULES_R, BEGIN_S + at_s
        )

    assert decide(memory, RULES_R).awaited == awaited
