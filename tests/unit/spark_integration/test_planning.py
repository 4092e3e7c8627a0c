"""Which events a batch has, and which task reads which of them."""

from hypothesis import given
from hypothesis import strategies as st

from spark_integration.planning import (
    EventRange,
    PartitionSpan,
    advance,
    beyond_end,
    expired,
    in_order,
    poll_interval_s,
    ranges_between,
    share,
    tasks_of,
)


def span(first: int, following: int) -> PartitionSpan:
    return PartitionSpan(first=first, next=following)


def planned(partition_id: str, start: int, end: int) -> EventRange:
    return EventRange(partition_id=partition_id, start=start, end=end)


# --- examples ------------------------------------------------------------------------------------


def test_without_a_limit_a_batch_ends_where_the_hub_does():
    """Nothing is held back."""
    assert advance({"0": 3}, {"0": span(0, 10)}) == {"0": 10}


def test_a_limit_is_shared_equally_and_what_one_does_not_need_goes_to_others():
    """A long backlog elsewhere delays nobody."""
    spans = {"0": span(0, 1000), "1": span(0, 5), "2": span(0, 1000)}

    assert advance({"0": 0, "1": 0, "2": 0}, spans, 205) == {"0": 100, "1": 5, "2": 100}


def test_a_partition_born_later_is_read_from_its_first_event():
    """The offset before it did not know it."""
    end = advance({"0": 7}, {"0": span(0, 7), "1": span(0, 4)})

    assert end == {"0": 7, "1": 4}
    assert ranges_between({"0": 7}, end) == [planned("1", 0, 4)]


def test_a_partition_missing_from_an_answer_stays_where_it_is():
    """A hub never shrinks."""
    assert advance({"0": 7, "1": 9}, {"0": span(0, 8)}) == {"0": 8, "1": 9}


def test_an_empty_new_partition_is_noted_at_once():
    """So that its place in the offset does not depend on when its first event came."""
    assert advance({"0": 7}, {"0": span(0, 7), "1": span(0, 0)}) == {"0": 7, "1": 0}


def test_what_retention_passed_is_named():
    """From the position up to the oldest event that is left."""
    assert expired({"0": 3}, {"0": span(8, 20)}) == [planned("0", 3, 8)]
    assert expired({"0": 8}, {"0": span(8, 20)}) == []


def test_events_that_are_gone_take_no_place_in_a_batch():
    """The limit counts what can be read."""
    assert advance({"0": 3}, {"0": span(8, 20)}, 5) == {"0": 13}


def test_a_hub_that_ends_before_the_position_is_another_hub():
    """Sequence numbers never go back in one hub."""
    assert beyond_end({"0": 30, "1": 4}, {"0": span(0, 2), "1": span(0, 4)}) == {"0": 30}


def test_few_tasks_are_of_a_size():
    """The largest first, each to the task with the least."""
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
    """Ten comes behind nine."""
    assert in_order(["10", "9", "0"]) == ["0", "9", "10"]


def test_many_partitions_are_asked_about_less_often():
    """The service limits such questions."""
    assert poll_interval_s(1.0, 4, 25) == 1.0
    assert poll_interval_s(1.0, 100, 25) == 4.0


# --- laws ----------------------------------------------------------------------------------------

wants = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 50))


@given(wants, st.integers(0, 300))
def test_laws_of_sharing(wanted, most):
    """All that may be given is given, nobody gets too much, and nobody who wants gets less."""
    given_out = share(wanted, most)

    assert given_out.keys() == wanted.keys()
    assert sum(given_out.values()) == min(most, sum(wanted.values()))
    assert all(0 <= given_out[name] <= wanted[name] for name in wanted)
    unserved = [given_out[name] for name in wanted if given_out[name] < wanted[name]]
    assert not unserved or max(given_out.values()) <= min(unserved) + 1


@st.composite
def hubs(draw):
    """A hub, and a position in it that may lie before what is left."""
    spans, start = {}, {}
    for name in draw(st.lists(st.sampled_from("0123456789"), unique=True, min_size=1)):
        first = draw(st.integers(0, 20))
        spans[name] = span(first, first + draw(st.integers(0, 40)))
        if draw(st.booleans()):
            start[name] = draw(st.integers(0, spans[name].next))
    return spans, start


@given(hubs(), st.none() | st.integers(1, 60))
def test_laws_of_batches(hub, most):
    """Batch after batch reads every event that is left exactly once, and then none."""
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
        assert most is None or len(batch) <= most
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
def test_laws_of_tasks(sizes, tasks_max, per_task):
    """Whatever the division, each event is in exactly one task, and no limit is passed."""
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
