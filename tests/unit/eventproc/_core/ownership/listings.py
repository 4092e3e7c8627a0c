"""Listings and actions in a line of text.

A partition is written as ``id:owner``: ``0:b`` has a fresh record of ``b``, ``0:b!`` an expired
one, ``0:-`` a released one, and ``0`` none. ``0:me`` is held by this processor; ``0:me?`` is
recorded as its own, but it has no lease; ``0:b*`` is recorded as another's, but it has a lease; and
``0:me>`` is being handed over. ``~0:me`` has a record, but does not exist any more.

A member is written as its owner id: ``b`` has a fresh record, ``b!`` an old one,
and ``b!!`` one of an hour ago. ``b=leaving`` has
another status, ``b~`` has no hand-over, and ``b@v2`` belongs to the deployment ``v2``. What a
placement may know comes last: ``b/Ring`` names the placement ``Ring``, and ``b/Ordinal/2`` has the
ordinal 2, and ``b/P`` names ``Published:Even``. ``b/Weighted/x2`` has the weight 2, and
``b/Weighted/<2`` the capacity 2.
An owner without a member record is foreign.

A published plan is written as ``number leader partition:owner ...``, in which ``0:-`` has no
planned owner, and a member without a partition is written as ``:c``. It is by the placement
``Published:Even``.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from eventproc._core.ownership.cycle import Actions, decide
from eventproc._core.ownership.lease import Lease
from eventproc._core.ownership.living import Listing
from eventproc._core.ownership.members import OwnRecord
from eventproc._core.ownership.memory import GroupMemory, before_polls, observe
from eventproc._core.ownership.rules import Rules
from eventproc._core.placement.even import Even
from eventproc._core.placement.placement import MemberFacts
from eventproc._core.placement.published_plan import PublishedPlan, StoredPlan
from eventproc.models import (
    LoadBalancingStrategy,
    Member,
    MembershipSnapshot,
    MemberStatus,
    OwnershipSnapshot,
    PartitionOwnership,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BEGIN_S = 1000.0
FRESH, OLD, LONG_AGO = timedelta(seconds=1), timedelta(seconds=100), timedelta(hours=1)
RULES = Rules(
    owner_id="me",
    strategy=LoadBalancingStrategy.COOPERATIVE,
    placement=Even(),
    facts=MemberFacts(),
    expiration=timedelta(seconds=60),
    handoff_timeout=timedelta(seconds=30),
    standby_timeout=timedelta(seconds=300),
    load_balancing_interval=timedelta(seconds=10),
    rebalance_interval=timedelta(seconds=0.25),
)
SHORT = {"P": "Published:Even"}
STATUS = {
    "": MemberStatus.ACTIVE,
    "standby": MemberStatus.STANDBY,
    "leaving": MemberStatus.LEAVING,
    "restarting": MemberStatus.RESTARTING,
}


def member(text: str) -> Member:
    """Read a member record."""
    text, *placement = text.split("/")
    text, _, deployment_id = text.partition("@")
    text, _, incarnation = text.partition("#")
    name, _, status = text.partition("=")
    return Member(
        owner_id=name.rstrip("!~"),
        incarnation=incarnation or "1",
        status=STATUS[status],
        hands_over="~" not in name,
        deployment_id=deployment_id,
        placement=SHORT.get(placement[0], placement[0]) if placement else "Even",
        weight=next((float(fact[1:]) for fact in placement[1:] if fact[0] == "x"), 1.0),
        capacity=next((int(fact[1:]) for fact in placement[1:] if fact[0] == "<"), None),
        ordinal=next((int(fact) for fact in placement[1:] if fact.isdigit()), None),
        etag=f"{name.rstrip('!~')}/1",
        last_modified=NOW - (LONG_AGO if "!!" in name else OLD if "!" in name else FRESH),
    )


def published(text: str) -> StoredPlan:
    """Read a published plan; an empty text means that there is none."""
    if not text:
        return StoredPlan(etag=None, published=None)
    number, leader, *plan = text.split()
    pairs = [pair.split(":") for pair in plan]
    name, _, incarnation = leader.partition("#")
    found = PublishedPlan(
        number=int(number),
        leader=name,
        incarnation=incarnation or "1",
        placement="Published:Even",
        members=tuple(sorted({owner for _, owner in pairs} - {"-"})),
        owner_by_resource={p: None if owner == "-" else owner for p, owner in pairs if p},
    )
    return StoredPlan(etag=f"published plan/{number}", published=found)


def listing(
    partitions: str,
    members: str,
    rules: Rules = RULES,
    own: str = "",
    stored: StoredPlan | None = None,
) -> Listing:
    """Read a listing; *own* is the member record as this processor wants it."""
    ids, records, leases, handing_over = [], [], {}, set()
    for text in partitions.split():
        p, _, owner = text.removeprefix("~").partition(":")
        if not text.startswith("~"):
            ids.append(p)
        name = owner.rstrip("!?*>")
        if owner:
            age = OLD if "!" in owner else FRESH
            record = PartitionOwnership(
                partition_id=p,
                owner_id=None if name == "-" else name,
                etag=f"{p}/1",
                last_modified=NOW - age,
            )
            records.append(record)
        if owner in {"me", "me!"} or "*" in owner:
            leases[p] = Lease(
                partition_id=p, etag=f"{p}/1", sent_at_s=BEGIN_S - 1, answered_at_s=BEGIN_S - 1
            )
        if ">" in owner:
            handing_over.add(p)
    found = tuple(member(text) for text in members.split())
    mine = next((m for m in found if m.owner_id == "me"), None)
    if own:
        mine = member(own)
    assert mine is not None, "give the own record"
    return Listing(
        partition_ids=tuple(ids),
        present=MembershipSnapshot(members=found, as_of=NOW),
        owned=OwnershipSnapshot(ownerships=tuple(records), as_of=NOW),
        published=stored,
        asked_at_s=BEGIN_S,
        own=OwnRecord(
            member=mine, entered_at_s=BEGIN_S, sent_at_s=BEGIN_S, answer_within=timedelta(seconds=2)
        ),
        leases=leases,
        is_trusted=bool(leases),
        handing_over=frozenset(handing_over),
    )


UNPOLLED: Final = before_polls(RULES, OwnRecord(member=member("me"), entered_at_s=BEGIN_S))
"""The memory before the first poll, with any rules."""


def polled(memory: GroupMemory, seen: Listing, rules: Rules, now_s: float) -> GroupMemory:
    """Return the memory after a cycle that read this, and had no answer since the last one."""
    if memory.at_s < now_s:
        seen = replace(seen, silence_s=now_s - memory.at_s)
    memory = observe(memory, seen, rules, now_s)
    return memory.waiting_for(decide(memory, rules).plan.waits)


def after(seen: Listing, rules: Rules, *, lasting_s: float) -> Actions:
    """Decide when the group has looked like this for so long, with polls 20 s apart."""
    memory, at_s = UNPOLLED, BEGIN_S
    while True:
        memory = polled(memory, seen, rules, at_s)
        if at_s >= BEGIN_S + lasting_s:
            return decide(memory, rules)
        at_s = min(at_s + 20, BEGIN_S + lasting_s)


def actions(
    partitions: str,
    members: str,
    *,
    own: str = "",
    lasting_s: float = 1.0,
    stored: str | None = None,
    **changed: Any,
) -> str:
    """Decide on a listing; return what is written, and ``rest`` or ``wait`` if it is nothing."""
    rules = replace(RULES, **changed)
    found = None if stored is None else published(stored)
    done = after(listing(partitions, members, rules, own, found), rules, lasting_s=lasting_s)
    return described(done)


def described(done: Actions) -> str:
    """Return the actions in the order in which they are carried out."""
    step = done.member
    words = [f"renew {lease.partition_id}" for lease in done.renewals]
    if step.yields_because is not None:
        words.append("yield")
    if step.write is not None:
        words.append(f"write {step.write.status.value}")
    words += ["check owner id"] if done.is_resuming else []
    words += [f"claim {claim.partition_id}" for claim in done.moves.claims]
    words += [f"steal {done.moves.steal.partition_id}"] if done.moves.steal else []
    words += [f"transfer {claim.partition_id} to {claim.owner_id}" for claim in done.transfers]
    given = {claim.partition_id for claim in done.transfers}
    words += [f"drain {p} for {to}" for p, to in done.moves.hand_overs.items() if p not in given]
    if done.publish:
        plan = done.publish.published.owner_by_resource.items()
        words.append("publish " + " ".join(f"{p}:{owner or '-'}" for p, owner in plan))
    words += [f"forget {m.owner_id}" for m in done.forgotten]
    return ", ".join(words) or ("rest" if done.is_balanced else "wait")
