"""AMQP credit: bounded by a number of events and of bytes, and never zero for ever."""

from hypothesis import given
from hypothesis import strategies as st

from eventproc.sources.eventhubs._direct_path.receiver import TOO_FULL, UNKNOWN_SIZE, Credit

MEGABYTE = 1024 * 1024


def test_the_first_grant_assumes_events_of_medium_size():
    """Their real size is not known yet."""
    assert Credit(1000, 8 * MEGABYTE).to_grant(0) == 8 * MEGABYTE // UNKNOWN_SIZE
    assert Credit(100, 8 * MEGABYTE).to_grant(0) == 100


def test_small_events_are_bounded_by_their_number():
    """As soon as the first ones have arrived."""
    account = Credit(1000, 8 * MEGABYTE)
    account.add(128, 128 * 100)

    assert account.to_grant(0) == 1000 - 128


def test_credit_is_reduced_when_events_become_larger():
    """What was granted for small events would fill the memory."""
    account = Credit(1000, 8 * MEGABYTE)
    account.add(1, 100)
    account.add(1, MEGABYTE)

    assert account.to_grant(998) == 6


def test_small_changes_of_size_do_not_change_the_credit():
    """So they cost no frames."""
    account = Credit(1000, MEGABYTE)
    account.add(1, 2000)
    granted = account.to_grant(0)
    account.add(1, 2600)

    assert granted is not None
    assert account.to_grant(granted - 1) is None


def test_credit_grows_again_when_events_become_smaller():
    """One large event among small ones slows the link down for a while only."""
    account = Credit(1000, MEGABYTE)
    account.add(1, MEGABYTE)
    account.remove(1, MEGABYTE)
    account.add(1, 100)
    account.remove(1, 100)

    assert account.capacity == 1

    for _ in range(40):
        account.add(10, 1000)
        account.remove(10, 1000)

    assert account.capacity == 1000


@given(
    events_max=st.integers(1, 1000),
    bytes_max=st.integers(1, 10_000),
    sizes=st.lists(st.integers(0, 20_000), min_size=1, max_size=60),
    batch_size=st.integers(1, 9),
)
def test_a_service_that_obeys_credit_never_fills_the_memory(
    events_max, bytes_max, sizes, batch_size
):
    """Whatever the sizes, in whatever order; and every event arrives in the end."""
    account, granted = Credit(events_max, bytes_max), 0
    held: list[int] = []
    left = list(sizes)
    most = max(sizes)
    while left or held:
        wanted = account.to_grant(granted)
        if wanted is not None:
            granted = wanted

        assert granted + len(held) <= events_max or granted <= 1

        if granted and left and not account.is_too_full:
            held.append(left.pop(0))
            account.add(1, held[-1])
            granted -= 1
        else:
            assert held, "no credit is granted although nothing is held"
            taken, held = held[:batch_size], held[batch_size:]
            account.remove(len(taken), sum(taken))

        assert account.held_bytes == sum(held)
        assert account.held_bytes < TOO_FULL * bytes_max + most + 1
