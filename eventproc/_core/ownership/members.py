"""The members of a group: their status, two with one ``owner_id``, and those that a roster names.

The table ``CHANGES`` alone says which change of a status is allowed:

- A processor starts as *active*, or as *standby* if it replaces one of another deployment.
- A standby becomes active when there is nothing left to wait for.
- It ends as *leaving*, or as *restarting* if it keeps its partitions for its next start.

Of two processors that both consider an ``owner_id`` theirs, exactly one yields, whichever records
each of them read.

The plan waits for the members that a roster names:

Rule 1: the plan keeps a share for an expected member that has not joined yet, for as long as
``patience``. Meanwhile, partitions of that share stay with their live owner, or without one. So
the first processors of a group do not claim everything, only to hand it over a moment later.
Rule 2: this ends when the member has joined. If it then leaves or dies, its share goes to the
others at once.
Rule 3: if the roster does not answer, this processor uses the members that the published plan
names: those that the leader expected. So neither an unreachable API server nor a new leader changes
the plan.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from eventproc._core.ownership.lease import renewal_due_at_s, trusted_until_s
from eventproc._core.ownership.liveness import is_fresh
from eventproc._core.ownership.rules import Rules
from eventproc._core.placement.published_plan import PublishedPlan
from eventproc.models import Member, MembershipSnapshot, MemberStatus

ACTIVE, STANDBY, LEAVING, RESTARTING = (
    MemberStatus.ACTIVE,
    MemberStatus.STANDBY,
    MemberStatus.LEAVING,
    MemberStatus.RESTARTING,
)

CHANGES: Final[Mapping[MemberStatus, frozenset[MemberStatus]]] = {
    STANDBY: frozenset({ACTIVE, LEAVING, RESTARTING}),
    ACTIVE: frozenset({LEAVING, RESTARTING}),
    LEAVING: frozenset(),
    RESTARTING: frozenset(),
}
"""The changes that a processor makes to its own status, from start to stop."""

FORGET_AFTER_EXPIRATIONS: Final = 10
"""The age, in expirations, at which the member record of a processor without partitions is
deleted."""

RENEW_AFTER_EXPIRATIONS: Final = 4
"""The age, in expirations, at which an owner renews its member record. If it dies, the record says
so for some expirations more, while others have its partitions."""

OVERWRITES_MAX: Final = 3
"""How often two holders of one id may overwrite each other's record before one of them yields. A
processor that starts may write twice, if the outcome of its first write was unknown."""

HAS_JOINED: Final = float("-inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rivals:
    """The other incarnations that this processor has met under its ``owner_id``."""

    displaced: frozenset[str] = frozenset()
    """Those whose record this processor replaced when it started."""

    met: frozenset[tuple[str, str | None]] = frozenset()
    """The incarnation and ETag of each member record of another one that this processor read."""

    met_at_s: float = float("-inf")
    """When it last read one, on this processor's clock."""

    def displacing(self, incarnation: str) -> "Rivals":
        """Note that this processor replaces another one's record."""
        return replace(self, displaced=self.displaced | {incarnation})

    def meeting(self, other: Member, now_s: float) -> "Rivals":
        """Note that the member record is *other*, of another incarnation."""
        return replace(self, met=self.met | {(other.incarnation, other.etag)}, met_at_s=now_s)

    def is_recent(self, now_s: float, expiration: timedelta) -> bool:
        """Whether another incarnation was met within the last expiration.

        A recent write under this id may then be the other's. Later it cannot be: an incarnation
        that yielded writes nothing more, and the ETags of its writes in flight are out of date.
        """
        return now_s - self.met_at_s < expiration.total_seconds()

    def must_yield(
        self,
        me: Member,
        other: Member,
        present: MembershipSnapshot,
        answer_within: timedelta | None,
        *,
        is_late: bool,
    ) -> bool:
        """Whether *other*, which the member record names, stays and this incarnation has to yield.

        It has to in four cases: *other* was there before this one; *other* wrote its record
        longer ago than *answer_within*, so its wait for an objection is over; this processor was
        silent for so long that the wait may be over although the record is newer (*is_late*); or
        both kept overwriting each other, and *other* has the higher incarnation.
        """
        if other.incarnation in self.displaced or is_late:
            return True
        written = other.last_modified
        if (
            written is not None
            and answer_within is not None
            and present.as_of - written > answer_within + present.resolution
        ):
            return True
        is_after = other.incarnation > me.incarnation
        write_count = sum(incarnation == other.incarnation for incarnation, _ in self.met)
        return is_after and write_count > OVERWRITES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRecord:
    """What a processor knows of its own member record."""

    member: Member
    """As it should be stored, with the ETag that the store confirmed last."""

    entered_at_s: float
    sent_at_s: float = float("-inf")
    """When the last confirmed write was sent, on this processor's clock."""

    answered_at_s: float = float("-inf")
    """When its answer came: a listing requested after this must show the record."""

    acted_at_s: float = float("-inf")
    """When the newest listing was requested that this processor acted on."""

    silent_s: float = 0.0
    """For how long before the newest listing it had neither acted on one nor written a member
    record: a cycle that failed after it read the records answers nothing."""

    answer_within: timedelta | None = None
    """How long a live holder of this owner id takes to object to another one."""

    rivals: Rivals = field(default_factory=Rivals)

    def is_rival(self, found: Member | None) -> bool:
        """Whether a record found under this owner id is that of another processor."""
        return found is not None and found.incarnation != self.member.incarnation

    def changed_to(self, status: MemberStatus) -> "OwnRecord":
        """Return the record with another status, if ``CHANGES`` allows it."""
        if status not in CHANGES[self.member.status]:
            return self
        return replace(self, member=replace(self.member, status=status))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStep:
    """What to do with this processor's member record."""

    write: Member | None = None
    """The record to write, with the ETag that it replaces."""

    yields_because: str | None = None
    """Why this processor ends, if another one has its owner id."""

    rival: str | None = None
    """The incarnation whose record is replaced because this processor stays."""

    has_replaced: bool = False
    """Whether it holds its whole share, which is not empty: a standby then becomes active."""


def find(present: MembershipSnapshot, owner_id: str) -> Member | None:
    """Return the member record with this owner id."""
    return next((m for m in present.members if m.owner_id == owner_id), None)


def first_status(own: Member, members: Iterable[Member], owners: Iterable[str]) -> MemberStatus:
    """*Standby*, if this processor owns nothing and can replace a live member."""
    is_replacing = own.owner_id not in owners and _can_replace(own, members)
    return STANDBY if is_replacing else ACTIVE


def is_contested(
    own: Member, present: MembershipSnapshot, owners: Collection[str], expiration: timedelta
) -> bool:
    """Whether the records show that another live processor has this owner id.

    *owners* are the owners of fresh ownership records. A processor with the status *restarting* has
    stopped.
    """
    found = find(present, own.owner_id)
    if found is not None and (found.incarnation == own.incarnation or found.status is RESTARTING):
        return False
    is_live = found is not None and is_fresh(found, present, expiration)
    return is_live or own.owner_id in owners


def _can_replace(own: Member, members: Iterable[Member]) -> bool:
    """Whether a member of another deployment is live, which this one can replace."""
    return bool(own.deployment_id) and any(
        member.deployment_id != own.deployment_id
        and member.owner_id != own.owner_id
        and member.status in {ACTIVE, LEAVING}
        for member in members
    )


def ends_standby(
    own: OwnRecord, members: Iterable[Member], rules: Rules, now_s: float, *, has_replaced: bool
) -> bool:
    """Whether a standby has nothing left to wait for.

    That is so if it has replaced another processor, if ``standby_timeout`` has passed, or if no
    live member belongs to another deployment.
    """
    if own.member.status is not STANDBY:
        return False
    is_over = now_s - own.entered_at_s > rules.standby_timeout.total_seconds()
    return has_replaced or is_over or not _can_replace(own.member, members)


def member_step(
    own: OwnRecord,
    present: MembershipSnapshot,
    rules: Rules,
    now_s: float,
    *,
    asked_at_s: float,
    owns_something: bool,
    is_trusted: bool,
) -> MemberStep:
    """Compare the stored record with the wanted one, and return what to write.

    Args:
        own: The wanted record.
        present: The newest listing, which was requested at *asked_at_s*.
        rules: This processor's rules.
        now_s: This processor's clock.
        asked_at_s: When the listing was requested.
        owns_something: Whether this processor has ownership records, which show that it is alive.
        is_trusted: Whether any lease of this processor may be trusted now.
    """
    found = find(present, own.member.owner_id)
    write = replace(own.member, etag=found.etag if found else None)
    if found is not None and own.is_rival(found):
        is_stale = now_s > trusted_until_s(own.sent_at_s, rules.expiration)
        is_over = is_stale or own.member.status is LEAVING
        is_late = not owns_something and _is_late(own, rules)
        if (is_over and not is_trusted) or own.rivals.must_yield(
            own.member, found, present, own.answer_within, is_late=is_late
        ):
            return MemberStep(yields_because="it was taken while this processor was away")
        return MemberStep(write=write, rival=found.incarnation)
    if asked_at_s < own.answered_at_s:
        return MemberStep()  # The listing may be older than the record.
    if found is None or found.status is not own.member.status:
        return MemberStep(write=write)
    is_due = renewal_due_at_s(own.sent_at_s, rules.expiration) <= now_s
    is_old = now_s - own.sent_at_s > (RENEW_AFTER_EXPIRATIONS * rules.expiration).total_seconds()
    is_needed = not owns_something or is_old or found.load != own.member.load
    return MemberStep(write=write if is_due and is_needed else None)


def _is_late(own: OwnRecord, rules: Rules) -> bool:
    """Whether this processor was away for so long that another incarnation may have joined.

    The age of a record that is renewed does not show when its incarnation joined. But that was
    after this processor had last acted on the records.
    """
    if own.answer_within is None:
        return False
    longest_s = max(own.answer_within.total_seconds(), renewal_due_at_s(0, rules.expiration))
    return own.silent_s > longest_s


def members_to_forget(
    present: MembershipSnapshot, owners: Iterable[str], rules: Rules
) -> tuple[Member, ...]:
    """Return the records of processors that ended long ago.

    *owners* own something, or did so in the last expiration: the member record of one that gave its
    last partition away is as old as its first claim, until it renews that record.
    """
    owning = {rules.owner_id, *owners}
    long = FORGET_AFTER_EXPIRATIONS * rules.expiration
    return tuple(
        member
        for member in present.members
        if member.owner_id not in owning
        and member.last_modified is not None
        and present.as_of - member.last_modified > long
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedMembers:
    """What a processor knows of the members that its group should have."""

    names: frozenset[str] = frozenset()

    since_s: Mapping[str, float] = field(default_factory=dict)
    """Since when each of them has been expected; ``HAS_JOINED`` if it has joined since."""

    def awaited(self, patience: timedelta, now_s: float) -> frozenset[str]:
        """Return those that the plan waits for."""
        oldest_s = now_s - patience.total_seconds()
        return frozenset(name for name, since_s in self.since_s.items() if since_s > oldest_s)


def observe_expected(
    known: ExpectedMembers,
    found: frozenset[str] | None,
    published: PublishedPlan | None,
    members: Collection[Member],
    now_s: float,
) -> ExpectedMembers:
    """Return what is known after a poll.

    Args:
        known: What was known before.
        found: What the roster says; ``None`` if this processor has not read it.
        published: The plan that the group follows.
        members: The live members.
        now_s: This processor's time.
    """
    if found is None:
        found = known.names if published is None else frozenset(published.expected)
    joined = {member.owner_id for member in members} | set(
        () if published is None else published.members
    )

    def since_s(name: str) -> float:
        return HAS_JOINED if name in joined else known.since_s.get(name, now_s)

    return ExpectedMembers(names=found, since_s={name: since_s(name) for name in found})
