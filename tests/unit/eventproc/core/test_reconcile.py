"""Which pumps to start and to end."""

from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.reconcile import reconcile

some = st.frozensets(st.sampled_from("abcdef"))


@given(some, some, some)
def test_pumps_are_started_and_ended_until_they_match_the_owned_partitions(running, owned, ending):
    """A partition whose pump is ending gets neither a second pump nor a second end."""
    change = reconcile(running=running, owned=owned, ending=ending)
    after = (running | set(change.start)) - set(change.end)

    assert after - ending == owned - ending
    assert not ending & {*change.start, *change.end}
    assert not running & set(change.start)
    assert list(change.start) == sorted(change.start)
    assert list(change.end) == sorted(change.end)
