"""How long an owner trusts its lease, and when other processors consider it expired."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.lease import (
    Observation,
    is_fresh,
    live_owners,
    observe,
    present_members,
    renewal_due_at_s,
    trusted_until_s,
)
from eventproc.models import Member, OwnershipSnapshot, PartitionOwnership

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
EXPIRATION = timedelta(seconds=60)
SECOND = timedelta(seconds=1)

seconds = st.floats(0, 10_000, allow_nan=False)
resolutions = st.sampled_from([timedelta(0), SECOND])


def record(partition_id="0", owner_id: str | None = "a", etag="1", age_s=0.0):
    """An ownership record that was written *age_s* seconds before ``BEGIN``."""
    return PartitionOwnership(
        partition_id=partition_id,
        owner_id=owner_id,
        etag=etag,
        last_modified=BEGIN - timedelta(seconds=age_s),
    )


def snapshot(*records, as_of: datetime | None = BEGIN, resolution=timedelta(0)):
    """A listing of ownership records."""
    return OwnershipSnapshot(ownerships=records, as_of=as_of, resolution=resolution)


def live(snapshot_, observations=(), now_s=0.0, *, is_after_outage=False):
    """The live owners by partition, with an expiration of 60 s."""
    return live_owners(
        snapshot_,
        dict(observations),
        expiration=EXPIRATION,
        now_s=now_s,
        is_after_outage=is_after_outage,
    )


@given(seconds, st.floats(0.001, 5), st.floats(0.001, 5), st.timedeltas(SECOND, timedelta(days=1)))
def test_an_owner_stops_before_another_processor_may_claim(
    sent_at_s, latency_s, until_poll_s, expiration
):
    """Trust counts from the request and the expiration from the write, which is later."""
    written_s = sent_at_s + latency_s
    trusted_s = trusted_until_s(sent_at_s, expiration)
    earliest = BEGIN + timedelta(seconds=written_s) + expiration
    claimed_s = written_s + expiration.total_seconds() + until_poll_s

    assert is_fresh(BEGIN + timedelta(seconds=written_s), earliest, timedelta(0), expiration)
    assert trusted_s < claimed_s


@given(st.floats(0.95, 1.05), st.floats(0.95, 1.05), st.timedeltas(SECOND, timedelta(days=1)))
def test_the_clocks_of_owner_and_store_may_each_be_five_percent_off(
    owner_rate, store_rate, expiration
):
    """Trust by a slow clock ends before the expiration by a fast one."""
    trusted_for_s = trusted_until_s(0.0, expiration) / owner_rate
    lives_for_s = expiration.total_seconds() / store_rate

    assert trusted_for_s < lives_for_s


@given(seconds, st.timedeltas(SECOND, timedelta(days=1)))
def test_two_renewals_are_due_before_the_trust_ends(sent_at_s, expiration):
    """Each is due a third of the expiration after the one before."""
    first = renewal_due_at_s(sent_at_s, expiration)
    second = renewal_due_at_s(first, expiration)

    assert sent_at_s < first < second < trusted_until_s(sent_at_s, expiration)


@given(st.floats(0, 200), resolutions)
def test_a_record_is_fresh_for_the_expiration_plus_the_resolution(age_s, resolution):
    """Each of its two times may be rounded down by as much as the resolution."""
    age = timedelta(seconds=age_s)

    assert is_fresh(BEGIN - age, BEGIN, resolution, EXPIRATION) is (age <= EXPIRATION + resolution)


def test_expired_and_released_records_have_no_live_owner():
    """A released record has none whatever its age."""
    listing = snapshot(
        record("0", "a"), record("1", "b", age_s=61), record("2", None), record("3", "c", age_s=60)
    )

    assert live(listing) == {"0": "a", "3": "c"}


def test_a_clock_of_whole_seconds_keeps_an_owner_alive_one_second_longer():
    """Blobs have such times."""
    listing = snapshot(record(age_s=60.9), resolution=SECOND)

    assert live(listing) == {"0": "a"}


def test_after_an_outage_expired_records_keep_their_owners():
    """Live owners could not renew during it; a released partition stays without an owner."""
    listing = snapshot(record("0", "a", age_s=600), record("1", None))

    assert live(listing, is_after_outage=True) == {"0": "a"}


def test_without_the_stores_time_a_record_expires_if_its_etag_did_not_change():
    """For an expiration on the reader's clock; the time in the record is ignored."""
    listing = snapshot(record(age_s=6000), as_of=None)
    observations = observe({}, listing.ownerships, 10.0)

    assert live(listing, observations, 70.0) == {"0": "a"}
    assert live(listing, observations, 70.1) == {}


def test_an_observation_restarts_with_each_new_etag():
    """A renewal changes the ETag; the observation of a deleted record is dropped."""
    first = observe({}, [record("0", etag="1"), record("1", etag="1")], 1.0)
    second = observe(first, [record("0", etag="1"), record("1", etag="2")], 2.0)

    assert second == {
        "0": Observation(etag="1", first_seen_s=1.0),
        "1": Observation(etag="2", first_seen_s=2.0),
    }
    assert observe(second, [], 3.0) == {}


def member(name, age_s: float | None = 0.0):
    """A member record that was written *age_s* seconds before ``BEGIN``."""
    written = None if age_s is None else BEGIN - timedelta(seconds=age_s)
    return Member(owner_id=name, incarnation="i", last_modified=written)


def present(*members, as_of: datetime | None = BEGIN, owners=()):
    """The owner ids of the present members."""
    found = present_members(
        members, as_of=as_of, resolution=timedelta(0), expiration=EXPIRATION, owners=owners
    )
    return [m.owner_id for m in found]


def test_a_member_is_present_if_its_record_is_fresh_or_it_owns_a_partition():
    """Its ownership records show that it is alive, so it need not renew the member record."""
    members = (member("new"), member("old", 61), member("owner", 6000), member("undated", None))

    assert present(*members, owners=["owner"]) == ["new", "owner"]


def test_without_the_stores_time_all_listed_members_are_present():
    """Without a time to compare with, no record counts as expired."""
    assert present(member("old", 6000), member("undated", None), as_of=None) == ["old", "undated"]
