"""What runs becomes what is owned."""

from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.reconcile import reconcile

some = st.frozensets(st.sampled_from("abcdef"))


@given(some, some, some)
def test_afterwards_what_runs_is_what_is_owned(running, owned, ending):
    """What is ending has a pump: it gets neither a second one nor a second end."""
    change = reconcile(running=running, owned=owned, ending=ending)
    after = (running | set(change.start)) - set(change.end)

    assert after - ending == owned - ending
    assert not ending & {*change.start, *change.end}
    assert not running & set(change.start)
    assert list(change.start) == sorted(change.start)
    assert list(change.end) == sorted(change.end)
