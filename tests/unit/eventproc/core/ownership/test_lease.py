"""How long an owner trusts its lease, and when it renews it."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.ownership.lease import renewal_due_at_s, trusted_until_s

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
