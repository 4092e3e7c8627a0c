"""A published plan as bytes: what is stored stays, and nothing else is taken for one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.placement.published_plan import PublishedPlan, plan_in
from eventproc.errors import StoreCorruptError

SCHEMA = PublishedPlan(
    number=7,
    leader="a",
    incarnation="1",
    placement="Published:Even",
    members=("a", "b"),
    owner_by_resource={"0": "a", "1": "b", "2": "a", "3": None},
)
STORED = (
    b'{"version":1,"number":7,"leader":"a","incarnation":"1","placement":"Published:Even",'
    b'"members":["a","b"],"resources":{"a":["0","2"],"b":["1"]},"unplaced":["3"]}'
)

names = st.text()
published_plans = st.builds(
    PublishedPlan,
    number=st.integers(min_value=0),
    leader=names,
    incarnation=names,
    placement=names,
    members=st.lists(names).map(tuple),
    owner_by_resource=st.dictionaries(names, st.none() | names),
    expected=st.lists(names).map(tuple),
)


def test_the_stored_bytes_stay():
    """Members of two versions read each other's published plans."""
    assert SCHEMA.as_bytes() == STORED
    assert plan_in(STORED) == SCHEMA


@given(published_plans.filter(lambda published: "\ud800" not in repr(published)))
def test_every_plan_is_read_as_it_was_written(published):
    """Names of resources and members may be any text."""
    assert plan_in(published.as_bytes()) == published


def test_keys_of_a_later_version_are_ignored():
    """If the version says that this one may read it."""
    assert plan_in(STORED.replace(b'"number"', b'"later":[1],"number"')) == SCHEMA


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"7",
        b"\xff",
        STORED[:-1],
        b"[" * 100_000,
        STORED.replace(b'"number":7', b'"number":1e999'),
        STORED.replace(b'"number":7', b'"number":"x"'),
        STORED.replace(b'"members":["a","b"]', b'"members":7'),
        STORED.replace(b'"resources":{"a":["0","2"],"b":["1"]}', b'"resources":[]'),
    ],
)
def test_what_is_no_plan_reads_as_none(content):
    """Then the leader writes another one."""
    assert plan_in(content) is None


def test_a_plan_of_a_later_version_is_refused():
    """It is not overwritten either."""
    with pytest.raises(StoreCorruptError, match="version 2, written by a later eventproc"):
        plan_in(json.dumps({"version": 2}).encode())


def test_a_plan_covers_just_its_resources_and_members():
    """Otherwise the leader has to publish another one."""
    assert SCHEMA.covers(["3", "2", "1", "0"], {"b", "a"})
    assert not SCHEMA.covers(["0", "1", "2"], {"a", "b"})
    assert not SCHEMA.covers(["0", "1", "2", "3", "4"], {"a", "b"})
    assert not SCHEMA.covers(["0", "1", "2", "3"], {"a"})
