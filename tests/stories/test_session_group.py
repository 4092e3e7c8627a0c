"""Session leases of one processor: which members it fences, and when it polls in full."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessorConfig, LeaseMode
from eventproc.logs import get_logger
from eventproc.models import (
    ConsumerGroup,
    Member,
    MembershipSnapshot,
    MemberStatus,
    OwnershipSnapshot,
    PartitionOwnership,
)
from eventproc.ownership.duplicate_owner import DuplicateOwnerArbiter
from eventproc.ownership.session_mode import SessionLeases

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
CONFIG = EventProcessorConfig(lease_mode=LeaseMode.SESSION)
NAMES = ("0", "1")
HELD = frozenset({"0"})


def group(store: MemoryCheckpointStore | None = None) -> SessionLeases:
    """The session logic of the processor ``a``."""
    log = get_logger("eventproc.test")
    return SessionLeases(store or MemoryCheckpointStore(), GROUP, "a", config=CONFIG, log=log)


def member(owner_id: str, age_s: float = 0.0) -> Member:
    """A member with a session lease that was renewed *age_s* seconds ago."""
    return Member(
        owner_id=owner_id,
        incarnation=owner_id,
        lease_mode=LeaseMode.SESSION,
        last_modified=NOW - timedelta(seconds=age_s),
    )


def listing(*members: Member) -> MembershipSnapshot:
    """A listing of these member records."""
    return MembershipSnapshot(members=members, as_of=NOW)


def owned_by(owner_id: str) -> OwnershipSnapshot:
    """A listing in which partition 0 has this owner, and was written an hour ago."""
    record = PartitionOwnership(
        partition_id="0", owner_id=owner_id, etag="1", last_modified=NOW - timedelta(hours=1)
    )
    return OwnershipSnapshot(ownerships=(record,), as_of=NOW)


BEFORE = listing(member("a"), member("b", 30))


def rested(sessions: SessionLeases) -> SessionLeases:
    """The same after a full poll at second 100 that left nothing to do."""
    sessions.note_poll(BEFORE, NAMES, HELD, 100.0, is_stable=True)
    return sessions


def test_ownership_is_not_read_while_membership_is_unchanged():
    """For up to half an expiration. A renewed member record does not count as a change."""
    sessions = rested(group())
    renewed = listing(member("b"), member("a", 10))

    assert sessions.is_unchanged(renewed, NAMES, HELD, 130.0)
    assert not sessions.is_unchanged(renewed, NAMES, HELD, 130.1)
    assert not group().is_unchanged(renewed, NAMES, HELD, 100.0)


@pytest.mark.parametrize(
    "present",
    [
        listing(member("a")),
        listing(member("a"), member("b"), member("c")),
        listing(member("a"), member("b", 61)),
        listing(member("a"), replace(member("b"), incarnation="another")),
        listing(member("a"), replace(member("b"), status=MemberStatus.LEAVING)),
    ],
    ids=["gone", "come", "silent", "restarted", "leaving"],
)
def test_a_change_of_membership_makes_the_next_poll_a_full_one(present):
    """A processor that changes what others own first changes its member record."""
    assert not rested(group()).is_unchanged(present, NAMES, HELD, 101.0)


def test_a_change_of_its_own_partitions_makes_the_next_poll_a_full_one():
    """The hub has grown, or a lease was lost."""
    sessions = rested(group())

    assert not sessions.is_unchanged(BEFORE, (*NAMES, "2"), HELD, 101.0)
    assert not sessions.is_unchanged(BEFORE, NAMES, frozenset(), 101.0)


def test_a_full_poll_that_left_something_to_do_is_followed_by_another():
    """An earlier full poll does not count any more."""
    sessions = rested(group())
    sessions.note_poll(BEFORE, NAMES, HELD, 101.0, is_stable=False)

    assert not sessions.is_unchanged(BEFORE, NAMES, HELD, 102.0)


async def test_a_fenced_member_is_dead_in_the_listing_that_the_plan_uses():
    """With the ETag of that write, so this cycle already claims what the member owned."""
    async with MemoryCheckpointStore() as store:
        result = await store.announce_member(GROUP, member("b"))
        assert result.member is not None
        silent = replace(result.member, last_modified=NOW - timedelta(seconds=61))
        sessions, owned = group(store), owned_by("b")
        present = await sessions.fence_silent(listing(member("a"), silent), owned)
        stored = (await store.list_members(GROUP)).members

        (dead,) = (m for m in present.members if m.owner_id == "b")
        assert (dead.status, dead.etag) == (MemberStatus.DEAD, stored[0].etag)
        assert sessions.live_owners(present, owned, 0.0, is_after_outage=False) == {}


async def test_a_member_that_renews_before_the_write_is_not_fenced():
    """The write names the ETag that was read, and loses."""
    async with MemoryCheckpointStore() as store:
        result = await store.announce_member(GROUP, member("b"))
        assert result.member is not None
        silent = replace(result.member, last_modified=NOW - timedelta(seconds=61))
        await store.announce_member(GROUP, result.member)
        seen, owned = listing(member("a"), silent), owned_by("b")

        assert await group(store).fence_silent(seen, owned) == seen


def test_an_absence_counts_from_the_first_poll_without_the_record():
    """It does not start again at each poll, or an absent member would never be dead."""
    sessions, owned, without_b = group(), owned_by("b"), listing(member("a"))

    def live(now_s: float, present: MembershipSnapshot = without_b) -> dict[str, str]:
        return sessions.live_owners(present, owned, now_s, is_after_outage=False)

    assert live(0.0) == {"0": "b"}
    assert live(60.0) == {"0": "b"}
    assert live(60.1) == {}
    assert live(61.0, listing(member("a"), member("b"))) == {"0": "b"}
    assert live(62.0) == {"0": "b"}
    assert live(121.0) == {"0": "b"}


@pytest.mark.parametrize(("age_s", "must_yield"), [(12.0, False), (13.0, False), (13.1, True)])
def test_a_holder_yields_if_the_other_record_is_older_than_its_time_to_answer(age_s, must_yield):
    """Plus the resolution of the store's clock, by which the record may seem older than it is."""
    arbiter = DuplicateOwnerArbiter("1", expiration=timedelta(seconds=60), clock=lambda: 0.0)
    other = replace(member("a", age_s), incarnation="0")
    present = replace(listing(other), resolution=timedelta(seconds=1))

    assert arbiter.must_yield_to(other, present, timedelta(seconds=12)) is must_yield
