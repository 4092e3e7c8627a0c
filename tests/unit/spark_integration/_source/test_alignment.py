"""The search for the enqueued time at which a batch ends."""

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from spark_integration._source.alignment import AlignmentSearch, Backlog, TimeCut

Times = Mapping[str, Sequence[int]]
"""When the events of each partition were enqueued, in milliseconds."""


def search_in(times: Times, room: int) -> AlignmentSearch:
    return AlignmentSearch.begin(
        {
            p: Backlog.of([TimeCut(at[0], 0)], begin=0, end=len(at), newest_ms=at[-1])
            for p, at in times.items()
        },
        room,
    )


def first_at(at: Sequence[int], instant_ms: int) -> TimeCut:
    """Return a hub's answer: the first event at an instant or later, with its own time."""
    number = next(number for number, enqueued_ms in enumerate(at) if enqueued_ms >= instant_ms)
    return TimeCut(at[number], number)


def found(times: Times, room: int) -> AlignmentSearch:
    """Run the search to its end, against a hub with these events."""
    search = search_in(times, room)
    while (instant_ms := search.guess()) is not None:
        asked = {p: first_at(times[p], instant_ms) for p in search.unknown(instant_ms)}
        search = search.learn(instant_ms, asked)
    return search


def test_partitions_of_unequal_rate_end_at_one_time():
    """One guess is enough where rates are steady, however unequal."""
    times = {"0": range(0, 10_000, 10), "1": range(0, 10_000, 1000)}
    search = found(times, 404)
    ends = search.ends()

    assert search.guess_count == 1
    assert 202 <= sum(ends.values()) <= 404
    assert ends["1"] == -(-ends["0"] // 100)


def test_a_partition_without_events_of_the_batchs_time_is_not_queried():
    """It is not queried until a batch reaches its time."""
    search = search_in({"0": range(1000), "1": range(5000, 5010)}, 100)
    instant_ms = search.guess()

    assert instant_ms is not None
    assert search.unknown(instant_ms) == ["0"]
    assert found({"0": range(1000), "1": range(5000, 5010)}, 100).ends()["1"] == 0


def test_all_events_of_one_millisecond_are_in_one_batch():
    """A batch ends at an instant and has at least one event, so the limit may be exceeded."""
    assert found({"0": [7] * 50 + [9], "1": [7] * 50}, 10).ends() == {"0": 50, "1": 50}


def test_a_burst_far_from_the_others_takes_few_requests():
    """Three days without events, then a million events in a minute."""
    day = 86_400_000
    times = {"0": [0, *range(3 * day, 3 * day + 60_000)], "1": [0, 3 * day + 60_000]}

    assert found(times, 5000).guess_count <= 5


def test_a_clock_that_went_back_loses_nothing():
    """An answer cannot move an end before the beginning."""
    backlog = Backlog.of([TimeCut(100, 5)], begin=5, end=9, newest_ms=199)
    learnt = backlog.learn(150, TimeCut(160, 7)).learn(155, TimeCut(152, 6))
    reversed_ends = Backlog.of([TimeCut(300, 5), TimeCut(350, 7)], begin=5, end=9, newest_ms=199)

    for known in (learnt, reversed_ends):
        assert list(known.cuts) == sorted(known.cuts)
        assert [cut.number for cut in known.cuts] == sorted(cut.number for cut in known.cuts)
        assert known.count_before(10) == 0
        assert known.count_before(1000) == 4


@given(
    st.dictionaries(
        st.sampled_from("01234567"),
        st.lists(st.integers(0, 5000), min_size=1, max_size=80).map(sorted),
        min_size=1,
    ),
    st.integers(1, 100),
)
def test_a_batch_has_exactly_the_events_before_one_instant(times, room):
    """Within the limit, and found in few steps."""
    total = sum(map(len, times.values()))
    if total <= room:
        return
    search = found(times, room)
    ends = search.ends()
    taken = [at for p, end in ends.items() for at in times[p][:end]]
    left = [at for p, end in ends.items() for at in times[p][end:]]

    assert taken
    assert not left or max(taken) < min(left)
    assert len(taken) <= room or len(set(taken)) == 1
    assert search.guess_count <= 30
