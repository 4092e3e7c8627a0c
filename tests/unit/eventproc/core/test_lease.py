"""How long a claim is trusted by its owner, and when everybody else may take it for dead."""

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
    """A record that was written so long before ``BEGIN``."""
    return PartitionOwnership(
        partition_id=partition_id,
        owner_id=owner_id,
        etag=etag,
        last_modified=BEGIN - timedelta(seconds=age_s),
    )


def snapshot(*records, as_of: datetime | None = BEGIN, resolution=timedelta(0)):
    """A listing."""
    return OwnershipSnapshot(ownerships=records, as_of=as_of, resolution=resolution)


def live(snapshot_, observations=(), now_s=0.0, *, is_after_outage=False):
    """Who is alive, with the usual expiration."""
    return live_owners(
        snapshot_,
        dict(observations),
        expiration=EXPIRATION,
        now_s=now_s,
        is_after_outage=is_after_outage,
    )


@given(seconds, st.floats(0.001, 5), st.floats(0.001, 5), st.timedeltas(SECOND, timedelta(days=1)))
def test_an_owner_stops_before_anybody_may_take_over(sent_at_s, way_s, look_s, expiration):
    """The write takes effect after it was sent, so whoever finds it expired comes later."""
    written_s = sent_at_s + way_s
    trusted_s = trusted_until_s(sent_at_s, expiration)
    earliest = BEGIN + timedelta(seconds=written_s) + expiration
    taken_s = written_s + expiration.total_seconds() + look_s

    assert is_fresh(BEGIN + timedelta(seconds=written_s), earliest, timedelta(0), expiration)
    assert trusted_s < taken_s


@given(st.floats(0.95, 1.05), st.floats(0.95, 1.05), st.timedeltas(SECOND, timedelta(days=1)))
def test_clocks_may_run_five_percent_apart_from_the_true_one(owner_rate, store_rate, expiration):
    """An owner whose clock runs slow stops before a store whose clock runs fast lets it go."""
    trusted_for_s = trusted_until_s(0.0, expiration) / owner_rate
    lives_for_s = expiration.total_seconds() / store_rate

    assert trusted_for_s < lives_for_s


@given(seconds, st.timedeltas(SECOND, timedelta(days=1)))
def test_two_renewals_may_fail_before_the_trust_ends(sent_at_s, expiration):
    """It is renewed at a third of its life."""
    third = renewal_due_at_s(sent_at_s, expiration)
    second_try = renewal_due_at_s(third, expiration)

    assert sent_at_s < third < second_try < trusted_until_s(sent_at_s, expiration)


@given(st.floats(0, 200), resolutions)
def test_a_record_lives_for_the_expiration_and_what_the_clock_hides(age_s, resolution):
    """Both of its times may be cut to the resolution."""
    age = timedelta(seconds=age_s)

    assert is_fresh(BEGIN - age, BEGIN, resolution, EXPIRATION) is (age <= EXPIRATION + resolution)


def test_expired_and_released_records_have_no_live_owner():
    """An expired one is free, and a released one whatever its age."""
    listing = snapshot(
        record("0", "a"), record("1", "b", age_s=61), record("2", None), record("3", "c", age_s=60)
    )

    assert live(listing) == {"0": "a", "3": "c"}


def test_a_coarse_clock_gives_a_record_one_second_more():
    """A blob's times are whole seconds."""
    listing = snapshot(record(age_s=60.9), resolution=SECOND)

    assert live(listing) == {"0": "a"}


def test_after_an_outage_nobody_is_dead_but_released_is_released():
    """Live owners could not write, either; a released partition is free all the same."""
    listing = snapshot(record("0", "a", age_s=600), record("1", None))

    assert live(listing, is_after_outage=True) == {"0": "a"}


def test_without_the_stores_time_only_what_was_seen_unchanged_is_dead():
    """The record's own time says nothing then: an expiration of my own clock must pass."""
    listing = snapshot(record(age_s=6000), as_of=None)
    observations = observe({}, listing.ownerships, 10.0)

    assert live(listing, observations, 70.0) == {"0": "a"}
    assert live(listing, observations, 70.1) == {}


def test_an_observation_starts_again_with_each_change():
    """A renewal is a new etag; a record that is gone is forgotten."""
    first = observe({}, [record("0", etag="1"), record("1", etag="1")], 1.0)
    second = observe(first, [record("0", etag="1"), record("1", etag="2")], 2.0)

    assert second == {
        "0": Observation(etag="1", first_seen_s=1.0),
        "1": Observation(etag="2", first_seen_s=2.0),
    }
    assert observe(second, [], 3.0) == {}


def member(name, age_s: float | None = 0.0):
    """A presence record."""
    written = None if age_s is None else BEGIN - timedelta(seconds=age_s)
    return Member(owner_id=name, incarnation="i", last_modified=written)


def present(*members, as_of: datetime | None = BEGIN, owners=()):
    """The names of those that are there."""
    found = present_members(
        members, as_of=as_of, resolution=timedelta(0), expiration=EXPIRATION, owners=owners
    )
    return [m.owner_id for m in found]


def test_who_is_there_is_fresh_or_owns_something():
    """An owner's ownership records speak for it, so that its presence need not be renewed."""
    members = (member("new"), member("old", 61), member("owner", 6000), member("odd", None))

    assert present(*members, owners=["owner"]) == ["new", "owner"]


def test_without_the_stores_time_everybody_listed_is_there():
    """No record can be called expired."""
    assert present(member("old", 6000), member("odd", None), as_of=None) == ["old", "odd"]
