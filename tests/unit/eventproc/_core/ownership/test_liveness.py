"""Which records are fresh, and which members and owners are alive."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from eventproc._core.ownership.liveness import (
    foreign_owners,
    fresh_owners,
    is_fresh,
    last_writes,
    live_members,
)
from eventproc.models import Member, MembershipSnapshot, OwnershipSnapshot, PartitionOwnership

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
EXPIRATION = timedelta(seconds=60)
SECOND = timedelta(seconds=1)


def record(partition_id="0", owner_id: str | None = "a", age_s=0.0):
    """An ownership record that was written *age_s* seconds before ``BEGIN``."""
    return PartitionOwnership(
        partition_id=partition_id,
        owner_id=owner_id,
        etag="1",
        last_modified=BEGIN - timedelta(seconds=age_s),
    )


def snapshot(*records, resolution=timedelta(0)):
    """A listing of ownership records."""
    return OwnershipSnapshot(ownerships=records, as_of=BEGIN, resolution=resolution)


@pytest.mark.parametrize("age_s", [0, 58.5, 59.5, 60, 60.5, 61, 61.5, 200])
@pytest.mark.parametrize("resolution", [timedelta(0), SECOND])
def test_a_record_is_fresh_for_the_expiration_plus_the_resolution(age_s, resolution):
    """Each of its two times may be rounded down by as much as the resolution."""
    age, written = timedelta(seconds=age_s), record(age_s=age_s)
    listing = snapshot(written, resolution=resolution)
    found = is_fresh(written, listing, EXPIRATION)

    assert found is (age <= EXPIRATION + resolution)
    assert ("0" in fresh_owners(listing, EXPIRATION)) is found


def test_the_newest_write_for_each_owner_is_known_for_an_expiration():
    """Also if another owner has replaced the record; an older listing takes nothing back."""
    first = last_writes({}, snapshot(record("0", "a", 50), record("1", "a", 20)), EXPIRATION)
    later = replace(snapshot(record("0", "b"), record("1", None)), as_of=BEGIN + 40 * SECOND)

    assert first == {"a": BEGIN - 20 * SECOND}
    assert last_writes({}, snapshot(record("0", "a", 60)), EXPIRATION) == {"a": BEGIN - EXPIRATION}
    assert last_writes(first, snapshot(record("0", "a", 30)), EXPIRATION) == first
    assert last_writes(first, later, EXPIRATION) == {**first, "b": BEGIN}
    assert last_writes(first, replace(later, as_of=BEGIN + 41 * SECOND), EXPIRATION) == {"b": BEGIN}
    whole = replace(later, as_of=BEGIN + 41 * SECOND, resolution=SECOND)
    assert last_writes(first, whole, EXPIRATION) == {**first, "b": BEGIN}


def member(name, age_s=0.0):
    """A member record that was written *age_s* seconds before ``BEGIN``."""
    return Member(
        owner_id=name,
        incarnation="i",
        last_modified=BEGIN - timedelta(seconds=age_s),
    )


def test_a_member_is_alive_if_its_record_is_fresh_or_it_owns_a_partition():
    """Its ownership records show that it is alive, so it need not renew the member record."""
    members = (member("new"), member("old", 61), member("owner", 6000))
    listing = MembershipSnapshot(members=members, as_of=BEGIN)

    found = live_members(listing, ["owner"], EXPIRATION)

    assert [m.owner_id for m in found] == ["new", "owner"]


def test_a_live_owner_without_a_member_record_is_foreign():
    """But not the processor itself, which may have written no member record yet."""
    members = MembershipSnapshot(members=(member("a"),), as_of=BEGIN)
    owned = snapshot(
        record("0", "a"), record("1", "x"), record("2", "y", age_s=61), record("3", "me")
    )

    assert foreign_owners(owned, members, "me", EXPIRATION) == {"x"}
