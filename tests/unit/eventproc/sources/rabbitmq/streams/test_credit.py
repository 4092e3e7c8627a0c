"""Credit bounds what waits in memory, and reading never stops."""

from hypothesis import given
from hypothesis import strategies as st

from eventproc.sources.rabbitmq.streams.credit import CHUNKS_MAX, FIRST, ChunkCredit


def test_nothing_is_granted_before_the_size_of_a_chunk_is_known():
    """The first credit is given with the subscription."""
    credit = ChunkCredit(100, 10_000)

    assert (credit.granted, credit.grant()) == (FIRST, 0)


def test_as_many_chunks_are_granted_as_fit_into_both_limits():
    """Here first the events, then the bytes are the tighter limit."""
    for events_max, bytes_max in ((100, 10**9), (10**9, 1_000)):
        credit = ChunkCredit(events_max, bytes_max)
        credit.add(10, 100)

        assert credit.grant() == 9 - (FIRST - 1)
        assert credit.granted == 9


def test_credit_is_renewed_when_half_of_it_is_used():
    """So there is neither a frame for each chunk nor a pause."""
    credit = ChunkCredit(100, 10**9)
    credit.add(10, 100)
    credit.grant()
    grants = []
    for _ in range(9):
        credit.remove(10, 100)
        credit.add(10, 100)
        grants.append(credit.grant())

    assert grants == [0, 0, 0, 0, 5, 0, 0, 0, 0]


def test_no_more_than_the_largest_credit_is_granted():
    """Tiny chunks need no more."""
    credit = ChunkCredit(10**6, 10**9)
    credit.add(1, 1)
    credit.grant()

    assert credit.granted == CHUNKS_MAX


def test_a_chunk_larger_than_the_limits_is_let_in_alone():
    """Only when nothing waits any more."""
    credit = ChunkCredit(10, 10**9)
    credit.add(1_000, 1)
    credit.add(1_000, 1)
    waiting = credit.grant()
    credit.remove(2_000, 2)

    assert (waiting, credit.grant()) == (0, 1)


def test_the_estimate_falls_slowly_and_rises_at_once():
    """One small chunk among large ones must not let too many large ones in."""
    credit = ChunkCredit(100, 10**9)
    credit.add(50, 1)
    credit.add(1, 1)
    credit.remove(51, 2)
    after_small = credit.grant()
    credit.add(100, 1)
    credit.remove(100, 1)

    assert after_small == 2
    assert credit.grant() == 0
    assert credit.granted == 1


@given(
    size=st.integers(1, 50),
    limit=st.integers(50, 200),
    turns=st.lists(st.integers(0, 60), min_size=5, max_size=60),
)
def test_what_waits_stays_within_the_limit_and_reading_never_stops(size, limit, turns):
    """The broker sends all it may; a receiver takes some, and asks for more."""
    credit = ChunkCredit(limit, 10**9)
    for taken in turns:
        for _ in range(credit.granted):
            credit.add(size, 1)

        assert credit.held_events <= max(limit, FIRST * size)
        credit.remove(min(taken, credit.held_events), 0)
        credit.grant()
    credit.remove(credit.held_events, 0)
    credit.grant()

    assert credit.granted > 0
