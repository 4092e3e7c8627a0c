"""Which events a batch has, and which task reads which of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_integration._source.planning import (
    EventRange,
    PartitionSpan,
    advance,
    beyond_end,
    expired,
    in_order,
    is_due,
    poll_interval_s,
    ranges_between,
    share,
    tasks_of,
    waiting_count,
)


def span(first: int, following: int) -> PartitionSpan:
    return PartitionSpan(first=first, next=following)


def planned(partition_id: str, start: int, end: int) -> EventRange:
    return EventRange(partition_id=partition_id, start=start, end=end)


# --- examples ------------------------------------------------------------------------------------


def test_without_a_limit_a_batch_ends_where_the_hub_does():
    """The batch has every event that the hub has."""
    assert advance({"0": 3}, {"0": span(0, 10)}) == {"0": 10}


def test_events_that_still_exist_after_the_start_are_waiting():
    """Also those of a partition that is new; not those that retention has deleted."""
    spans = {"0": span(0, 10), "1": span(5, 8), "2": span(0, 4), "3": span(2, 2)}

    assert waiting_count({"0": 7, "1": 1, "3": 2}, spans) == 3 + 3 + 4


@pytest.mark.parametrize(
    ("count", "waited_s", "is_planned"),
    [(99, 59.9, False), (100, 0.0, True), (99, 60.0, True), (0, 3600.0, False)],
)
def test_a_batch_waits_for_the_least_number_of_events(count, waited_s, is_planned):
    """But not for longer than the longest delay, and an empty one waits on."""
    assert is_due(count, least=100, waited_s=waited_s, delay_max_s=60.0) is is_planned


def test_a_limit_is_shared_in_proportion_to_the_backlogs():
    """So partitions of unequal rates advance at the same pace in time, within one event."""
    spans = {"0": span(0, 1000), "1": span(0, 250), "2": span(0, 750)}

    assert advance(dict.fromkeys(spans, 0), spans, 203) == {"0": 101, "1": 26, "2": 76}


def test_unequal_rates_stay_aligned_in_time_from_batch_to_batch():
    """Eight partitions of 25,000 to 100,000 events in one span of time: none falls behind."""
    spans = {str(number): span(0, 25_000 + number * 75_000 // 7) for number in range(8)}
    ends = dict.fromkeys(spans, 0)
    drifts = []
    while any(ends[p] < spans[p].next for p in spans):
        ends = advance(ends, spans, 100_000)
        parts = [ends[p] / spans[p].next for p in spans]
        drifts.append(max(parts) - min(parts))

    assert len(drifts) == 5
    assert max(drifts) < 0.001


def test_each_partition_gets_an_event_beside_long_backlogs():
    """At least one in a batch, even if the limit is below their number."""
    spans = {"0": span(0, 10**6), "1": span(0, 1), "2": span(0, 10**6), "3": span(4, 4)}
    start = {"0": 0, "1": 0, "2": 0, "3": 4}

    assert advance(start, spans, 10) == {"0": 5, "1": 1, "2": 4, "3": 4}
    assert advance(start, spans, 2) == {"0": 1, "1": 1, "2": 1, "3": 4}


def test_a_partition_created_later_is_read_from_its_first_event():
    """The earlier offset does not name it."""
    end = advance({"0": 7}, {"0": span(0, 7), "1": span(0, 4)})

    assert end == {"0": 7, "1": 4}
    assert ranges_between({"0": 7}, end) == [planned("1", 0, 4)]


def test_a_partition_missing_from_an_answer_stays_where_it_is():
    """A hub never loses a partition, so its position is kept."""
    assert advance({"0": 7, "1": 9}, {"0": span(0, 8)}) == {"0": 8, "1": 9}


def test_an_empty_new_partition_enters_the_offset_at_once():
    """So the offset does not depend on when its first event was published."""
    assert advance({"0": 7}, {"0": span(0, 7), "1": span(0, 0)}) == {"0": 7, "1": 0}


def test_expired_returns_the_deleted_events():
    """From the position up to the oldest event that still exists."""
    assert expired({"0": 3}, {"0": span(8, 20)}) == [planned("0", 3, 8)]
    assert expired({"0": 8}, {"0": span(8, 20)}) == []


def test_deleted_events_do_not_count_towards_the_limit():
    """The limit applies to events that can be read."""
    assert advance({"0": 3}, {"0": span(8, 20)}, 5) == {"0": 13}


def test_a_hub_that_ends_before_the_position_is_another_hub():
    """Sequence numbers never go back in one hub."""
    assert beyond_end({"0": 30, "1": 4}, {"0": span(0, 2), "1": span(0, 4)}) == {"0": 30}


def test_combined_tasks_are_of_similar_size():
    """Ranges go, the largest first, to the smallest task."""
    ranges = [planned("0", 0, 60), planned("1", 0, 30), planned("2", 0, 30)]

    assert tasks_of(ranges, tasks_max=2) == [[ranges[0]], [ranges[1], ranges[2]]]


def test_cut_ranges_begin_with_the_first_piece_of_each_partition():
    """At most five may read one partition at a time."""
    tasks = tasks_of([planned("0", 0, 10), planned("1", 5, 8)], events_per_task_max=4)

    assert tasks == [
        [planned("0", 0, 3)],
        [planned("1", 5, 8)],
        [planned("0", 3, 6)],
        [planned("0", 6, 10)],
    ]


def test_partition_ids_are_sorted_as_numbers():
    """Ten comes after nine."""
    assert in_order(["10", "9", "0"]) == ["0", "9", "10"]


def test_the_poll_interval_grows_with_the_number_of_partitions():
    """The service limits such requests."""
    assert poll_interval_s(1.0, 4, 25) == 1.0
    assert poll_interval_s(1.0, 100, 25) == 4.0


# --- laws ----------------------------------------------------------------------------------------

wants = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 50))


@given(wants, st.integers(1, 300))
def test_shares_are_proportional_and_use_up_the_limit(wanted, most):
    """Each share is within one event of proportional, and none is zero."""
    given_out = share(wanted, most)
    total, wanting = sum(wanted.values()), sum(want > 0 for want in wanted.values())

    assert given_out.keys() == wanted.keys()
    assert sum(given_out.values()) == min(max(most, wanting), total)
    for name, want in wanted.items():
        assert min(want, 1) <= given_out[name] <= want
        if wanting < most < total:
            fair = 1 + (want - 1) * (most - wanting) / (total - wanting)
            assert want == 0 or abs(given_out[name] - fair) < 1


@st.composite
def hubs(draw):
    """Draw a hub, and a position that may be before its oldest event."""
    spans, start = {}, {}
    for name in draw(st.lists(st.sampled_from("0123456789"), unique=True, min_size=1)):
        first = draw(st.integers(0, 20))
        spans[name] = span(first, first + draw(st.integers(0, 40)))
        if draw(st.booleans()):
            start[name] = draw(st.integers(0, spans[name].next))
    return spans, start


@given(hubs(), st.none() | st.integers(1, 60))
def test_successive_batches_read_every_event_once(hub, most):
    """Every event that still exists, and then none."""
    spans, start = hub
    left = sum(span.next - max(start.get(p, 0), span.first) for p, span in spans.items())
    seen: set[tuple[str, int]] = set()
    for _ in range(left + 2):
        end = advance(start, spans, most)
        batch = {
            (r.partition_id, number)
            for r in ranges_between(start, end)
            for number in range(max(r.start, spans[r.partition_id].first), r.end)
        }
        assert not batch & seen
        assert most is None or len(batch) <= max(most, len(spans))
        seen |= batch
        if end == start:
            break
        start = end

    assert advance(start, spans, most) == start
    assert len(seen) == left


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=12),
    st.none() | st.integers(1, 8),
    st.none() | st.integers(1, 30),
)
def test_each_event_is_in_exactly_one_task(sizes, tasks_max, per_task):
    """And no limit is exceeded."""
    ranges = [planned(str(number), 5, 5 + size) for number, size in enumerate(sizes)]
    tasks = tasks_of(ranges, tasks_max=tasks_max, events_per_task_max=per_task)
    events = [
        (piece.partition_id, number)
        for task in tasks
        for piece in task
        for number in range(piece.start, piece.end)
    ]

    assert sorted(events) == sorted(
        (r.partition_id, n) for r in ranges for n in range(r.start, r.end)
    )
    assert len(events) == len(set(events))
    if per_task is not None:
        assert all(len(piece) <= per_task for task in tasks for piece in task)
    elif tasks_max is not None:
        assert len(tasks) <= tasks_max
