"""Clauses on member records: conditional, renewable, withdrawn by their own etag only.

Relied on by: eventproc/_group/membership.py
"""

from dataclasses import replace
from enum import Enum
from typing import Any, Final

from eventproc.models import ConsumerGroup, Member, MemberStatus, OffsetFormat
from eventproc.ports import CheckpointStore
from eventproc.testing._clauses import require
from eventproc.testing._store_contract.bench import (
    Bench,
    owners,
    require_lost,
    require_present,
    require_won,
)
from eventproc.testing._store_contract.ownership import UNUSUAL_OWNER_IDS


class _LaterValue(Enum):
    """A value that a later version of eventproc may write into a field with an enum."""

    WORD = "unheard-of"


_LATER_VALUES: Final[dict[str, Any]] = dict.fromkeys(("status", "offset_format"), _LaterValue.WORD)


async def announce(store: CheckpointStore, group: ConsumerGroup, member: Member) -> Member:
    """Write a member record that must win, and return it as stored."""
    result = await store.announce_member(group, member)
    require_won(
        result.outcome, "an announcement on the etag that is stored must be won", result.error
    )
    stored = require_present(result.member, "a won announcement must come with the record")
    require(
        stored.etag is not None and stored.last_modified is not None,
        "a won announcement must come with etag and time",
    )
    require(
        replace(stored, etag=member.etag, last_modified=member.last_modified) == member,
        f"a won announcement must return what was announced: {stored} for {member}",
    )
    return stored


async def members(store: CheckpointStore, group: ConsumerGroup) -> set[Member]:
    """List the group's members, each at most once."""
    snapshot = await store.list_members(group)
    require(
        len({member.owner_id for member in snapshot.members}) == len(snapshot.members),
        "a listing must name each member once",
    )
    return set(snapshot.members)


async def member_record_comes_back(bench: Bench) -> None:
    """A member record is listed by every store as it was written, in all fields."""
    group = bench.new_group()
    require(await members(bench.store, group) == set(), "a new group must have no members")
    plain = await announce(bench.store, group, Member(owner_id="a", incarnation="1"))
    leaver = await announce(
        bench.store,
        group,
        Member(
            owner_id="b",
            incarnation="x y/ü%41",
            status=MemberStatus.STANDBY,
            hands_over=False,
            weight=2.5,
            capacity=7,
            ordinal=3,
            placement="Ring:bound=1.25",
            load="busy 0=0.25,a%2Fb=0.1,*=0.001",
            deployment_id="deploy/7 ü",
            offset_format=OffsetFormat.KAFKA,
            version="1.2.3+local",
        ),
    )
    require(
        await members(bench.other, group) == {plain, leaver},
        "members must be listed exactly as they were stored",
    )
    require(await owners(bench.store, group) == {}, "a member must not look like an owner")
    require(
        list(await bench.store.list_checkpoints(group)) == [],
        "a member must not look like a checkpoint",
    )


async def announcing_is_conditional(bench: Bench) -> None:
    """Announcing without an etag, or on an outdated one, is lost if the owner id is taken."""
    group = bench.new_group()
    first = await announce(bench.store, group, Member(owner_id="a", incarnation="1"))
    second = Member(owner_id="a", incarnation="2")
    for outdated in (second, replace(second, etag="0x0")):
        result = await bench.other.announce_member(group, outdated)
        require_lost(result.outcome, "an announcement under a name that is taken must be lost")
    result = await bench.store.announce_member(group, replace(first, owner_id="b"))
    require_lost(result.outcome, "renewing a member record that does not exist must be lost")
    require(await members(bench.store, group) == {first}, "a lost announcement changes nothing")


async def member_record_is_renewed(bench: Bench) -> None:
    """Writing the same again gives a new etag and never makes the record older."""
    group = bench.new_group()
    first = await announce(bench.store, group, Member(owner_id="a", incarnation="1"))
    renewed = await announce(bench.store, group, first)
    require(renewed.etag != first.etag, "a renewal must change the etag")
    assert first.last_modified is not None
    assert renewed.last_modified is not None
    require(renewed.last_modified >= first.last_modified, "a renewal must not go back in time")
    leaving = await announce(bench.store, group, replace(renewed, status=MemberStatus.LEAVING))
    require(await members(bench.other, group) == {leaving}, "the last announcement must be listed")
    result = await bench.store.announce_member(group, first)
    require_lost(result.outcome, "a renewal on an outdated etag must be lost")


async def withdrawing_is_conditional(bench: Bench) -> None:
    """A withdrawal deletes only the record with its etag; a missing record counts as won."""
    group = bench.new_group()
    first = await announce(bench.store, group, Member(owner_id="a", incarnation="1"))
    renewed = await announce(bench.other, group, replace(first, incarnation="2"))
    for stale in (first, replace(first, etag=None)):
        outcome = await bench.store.withdraw_member(group, stale)
        require_lost(outcome, "withdrawing a record that was replaced must be lost")
    require(await members(bench.store, group) == {renewed}, "a lost withdrawal deletes nothing")
    for _ in range(2):
        outcome = await bench.other.withdraw_member(group, renewed)
        require_won(outcome, "withdrawing must be won, even if the record is gone already")
        require(await members(bench.store, group) == set(), "what was withdrawn must be gone")
    again = await announce(bench.store, group, Member(owner_id="a", incarnation="3"))
    require(
        again.etag not in {first.etag, renewed.etag},
        "a record made anew must not repeat an etag of the deleted one",
    )


async def unusual_owners_are_distinguished(bench: Bench) -> None:
    """An owner id may have any characters; ids that differ only in case are different owners."""
    group = bench.new_group()
    announced = {
        await announce(bench.store, group, Member(owner_id=owner_id, incarnation="1"))
        for owner_id in UNUSUAL_OWNER_IDS
    }
    require(await members(bench.other, group) == announced, "owner ids must come back as given")
    for member in announced:
        await bench.other.withdraw_member(group, member)
    require(await members(bench.store, group) == set(), "each must be found again to withdraw it")


async def members_keep_to_their_group(bench: Bench) -> None:
    """A member record belongs to one group and is not listed in any other."""
    group = bench.new_group("$Default")
    mine = await announce(bench.store, group, Member(owner_id="a", incarnation="1"))
    for neighbour in (replace(group, name="$Default1"), replace(group, eventhub_name="hub2")):
        require(await members(bench.store, neighbour) == set(), "groups must not share members")
        await announce(bench.store, neighbour, Member(owner_id="a", incarnation="1"))
    shouted = replace(group, name="$DEFAULT")
    require(
        await members(bench.other, shouted) == {mine},
        "names that differ only in case must mean the same group",
    )


async def unknown_values_are_read_as_defaults(bench: Bench) -> None:
    """A value that a later version wrote is read as the field's default, and no listing fails."""
    group = bench.new_group()
    plain = await announce(bench.store, group, Member(owner_id="a", incarnation="1"))
    later = Member(owner_id="b", incarnation="2", **_LATER_VALUES)
    await bench.store.announce_member(group, later)
    listed = await members(bench.other, group)
    require(plain in listed, "an unknown word must not hide the other members")
    found = {
        replace(each, etag=None, last_modified=None) for each in listed if each.owner_id == "b"
    }
    # A store that keeps the objects themselves reads no values.
    require(
        found in ({Member(owner_id="b", incarnation="2")}, {later}),
        f"unknown words must be read as the defaults, they are read as {found}",
    )
