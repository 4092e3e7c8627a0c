"""How long an owner trusts its lease, and when it renews it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.ownership.lease import Lease, next_epoch, renewal_due_at_s, trusted_until_s
from eventproc.models import PartitionOwnership

SECOND = timedelta(seconds=1)

seconds = st.floats(0, 10_000, allow_nan=False)


@given(seconds, st.floats(0.001, 5), st.floats(0.001, 5), st.timedeltas(SECOND, timedelta(days=1)))
def test_an_owner_stops_before_another_processor_may_claim(
    sent_at_s, latency_s, until_poll_s, expiration
):
    """Trust counts from the request and the expiration from the write, which is later."""
    written_s = sent_at_s + latency_s
    trusted_s = trusted_until_s(sent_at_s, expiration)
    claimed_s = written_s + expiration.total_seconds() + until_poll_s

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


@pytest.mark.parametrize(
    ("owner_id", "etag", "is_doubtful", "asked_at_s", "is_contradicted"),
    [
        ("me", "1", False, 2.0, False),
        ("me", "2", False, 2.0, True),
        ("me", "2", True, 2.0, False),
        ("b", "2", True, 2.0, True),
        (None, "2", True, 2.0, True),
        ("b", "2", False, 0.5, False),
        ("b", "2", False, 1.0, True),
    ],
)
def test_another_owner_or_an_etag_that_is_surely_not_its_own_contradicts_a_lease(
    owner_id, etag, is_doubtful, asked_at_s, is_contradicted
):
    """The ETag may be its own if a later write has an unknown outcome."""
    lease = Lease(
        partition_id="0", etag="1", sent_at_s=0.0, answered_at_s=1.0, is_doubtful=is_doubtful
    )
    found = PartitionOwnership(
        partition_id="0",
        owner_id=owner_id,
        etag=etag,
        last_modified=datetime(2026, 1, 1, tzinfo=UTC),
    )

    assert lease.is_contradicted("me", found, asked_at_s) is is_contradicted


def test_a_deleted_record_contradicts_every_lease_that_was_confirmed_before_the_listing():
    """Whoever claims the partition next creates the record anew."""
    lease = Lease(partition_id="0", etag="1", sent_at_s=0.0, answered_at_s=1.0)

    assert lease.is_contradicted("me", None, 2.0)
    assert not lease.is_contradicted("me", None, 0.5)
    assert replace(lease, is_doubtful=True).is_contradicted("me", None, 2.0)


@given(
    st.lists(
        st.tuples(st.sampled_from(["claim", "delete", "erase"]), st.integers(1, 10_000)),
        max_size=30,
    )
)
def test_an_epoch_is_above_that_of_every_earlier_claim(steps):
    """Also after the record was deleted, or written by an SDK that erases the epoch.

    Each step takes at least a millisecond of the store's time.
    """
    now, stored, given_out = datetime(2026, 1, 1, tzinfo=UTC), None, [0]
    for kind, milliseconds in steps:
        now += timedelta(milliseconds=milliseconds)
        epoch = 0 if kind == "erase" else next_epoch(stored, now)
        if kind == "claim":
            assert epoch > given_out[-1]
            given_out.append(epoch)
        stored = None
        if kind != "delete":
            stored = PartitionOwnership(
                partition_id="0", owner_id="a", etag="1", last_modified=now, epoch=epoch
            )


def test_an_epoch_rises_even_if_the_stores_time_goes_back():
    """The record's own epoch is the floor."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    stored = PartitionOwnership(
        partition_id="0", owner_id="a", etag="1", last_modified=now, epoch=next_epoch(None, now)
    )

    assert next_epoch(stored, now - timedelta(days=1)) == stored.epoch + 1
