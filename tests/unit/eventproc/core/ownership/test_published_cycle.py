"""Given this listing and this schema, what does a processor write? As in ``test_cycle.py``."""

from dataclasses import replace
from typing import Any

import pytest

from eventproc.core.ownership.memory import GroupMemory, needs_ownership, observe
from eventproc.core.placement.even import Even
from eventproc.core.placement.published import Published
from eventproc.core.placement.ring import Ring
from eventproc.models import LeaseMode
from tests.unit.eventproc.core.ownership.listings import (
    BEGIN_S,
    RULES,
    actions,
    listing,
    schema,
)

SESSION = {"lease_mode": LeaseMode.SESSION}
NEW = {"lasting_s": 0.0}
PUBLISHED = {"placement": Published(Even())}


def publishing(stored: str, **changed: Any) -> dict[str, Any]:
    """Return the changes for a group that follows ``Published:Even``, and this schema."""
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
    "by another placement than now": (
        "0:me 1:z",
        "me/Published:Ring z/Published:Ring",
        {"placement": Published(Ring()), "stored": "5 me 0:me 1:z"},
        "publish 0:z 1:me",
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
    "session": (
        "0:me 1",
        "me/P",
        publishing("5 me 0:me", **SESSION),
        "publish 0:me 1:me",
    ),
    "I was fenced": (
        "0:me 1",
        "me=dead/P",
        publishing("", **SESSION, own="me/P"),
        "lose all, write active",
    ),
}


@pytest.mark.parametrize(
    ("partitions", "members", "changed", "written"), SITUATIONS.values(), ids=SITUATIONS
)
def test_a_listing_and_a_schema_give_these_actions(partitions, members, changed, written):
    """Each situation names the partitions, the members, what is changed, and the actions."""
    assert actions(partitions, members, **changed) == written


@pytest.mark.parametrize("now", ["6 me 0:me 1:b", "", "4 me 0:me 1:b"])
def test_a_quiet_session_reads_ownership_when_the_schema_changes(now):
    """Also if it was deleted, or an old one was restored."""
    rules = replace(RULES, **SESSION, **PUBLISHED)
    seen = listing("0:me 1:b", "me/P b/P", rules, stored=schema("5 b 0:me 1:b"))
    memory = GroupMemory()
    for at_s in (BEGIN_S, BEGIN_S + 1):
        memory = observe(memory, seen, rules, at_s)

    assert not needs_ownership(memory, replace(seen, owned=None), rules, BEGIN_S + 2)
    later = replace(seen, owned=None, schema=schema(now))
    assert needs_ownership(memory, later, rules, BEGIN_S + 2)
