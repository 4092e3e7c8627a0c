"""The history of a group is exact, and bounded."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.watching.changes import Entry
from eventproc._core.watching.history import (
    ENTRIES_MAX,
    GAPS_MAX,
    HISTORY_S,
    MOVES_MAX,
    SAMPLES_MAX,
    Gap,
    History,
    Holder,
    Sample,
)
from tests.unit.eventproc._core.watching.readings import group, partition


def sample(at_s):
    """Return a sample at this time."""
    return Sample(0, at_s, 0, 0.0, 0.0, 1, 0, 0)


def add(history, at_s, owners, entries=(), gap_s=10.0):
    """Add a reading in which the partitions have these owners."""
    reading = group(at_s, [partition(str(n), owner) for n, owner in enumerate(owners)])
    history.add(reading, sample(at_s), entries, gap_s=gap_s)


def holders(history, at_s):
    """Return the owner of each partition at a time, by what the history keeps."""
    found = dict(history.base)
    found |= {move.partition_id: move.holder for move in history.moves if move.at_s <= at_s}
    return {partition_id: holder.owner_id for partition_id, holder in found.items()}


def test_only_changes_are_kept():
    """A reading like the one before it adds nothing but a sample."""
    history = History()
    for at_s in range(0, 20, 2):
        add(history, at_s, "ab" if at_s < 10 else "aa")

    assert [(m.number, m.at_s, m.partition_id, m.holder) for m in history.moves] == [
        (1, 0, "0", Holder("a", False)),
        (1, 0, "1", Holder("b", False)),
        (6, 10, "1", Holder("a", False)),
    ]
    assert len(history.samples) == 10


def test_what_came_after_a_reading_continues_what_came_before():
    """Moves, samples and entries: none twice, none left out."""
    history = History()
    texts = []
    for at_s in range(0, 40, 2):
        entry = Entry(at_s=at_s, kind="k", text=str(at_s))
        add(history, at_s, "ab"[at_s % 4 // 2 :], [entry])
        texts += [e.text for e in history.entries_since(history.number - 1)]

    assert texts == [str(at_s) for at_s in range(0, 40, 2)]
    assert [m.number for m in history.moves_since(18)] == [19, 20]
    assert [s.number for s in history.samples_since(18)] == [19, 20]
    assert history.moves_since(20) == []


def test_of_readings_in_quick_succession_the_newest_sample_is_kept():
    """At most one in two seconds, beside the newest."""
    history = History()
    for step in range(100):
        add(history, step * 0.1, "a")
    times = [s.at_s for s in history.samples]

    assert times[-1] == 9.9
    assert len(times) <= 7


def test_a_time_without_a_reading_is_a_gap():
    """Nobody looked."""
    history = History()
    for at_s in (0, 2, 4, 100, 102):
        add(history, at_s, "a")

    assert list(history.gaps) == [Gap(4, 100)]


def test_what_is_older_than_two_hours_is_forgotten_and_the_owners_kept():
    """The picture begins later, and is as it was."""
    history = History()
    for at_s in (0, *range(120, 3 * 3600, 60)):
        add(
            history, at_s, "ab" if at_s < 1000 else "cb", [Entry(at_s=at_s, kind="k", text="t")], 99
        )
    begin_s = 3 * 3600 - 60 - HISTORY_S

    assert history.begin_s == begin_s
    assert holders(history, begin_s) == {"0": "c", "1": "b"}
    assert not history.moves
    assert not history.gaps
    assert history.samples[0].at_s >= begin_s
    assert history.entries[0][1].at_s >= begin_s


def test_an_owner_keeps_its_colour_and_a_forgotten_one_frees_it():
    """So that a group whose members change all the time has few."""
    history = History()
    for step in range(40):
        add(history, step * 600, f"a{chr(ord('b') + step % 20)}")
        assert history.colours["a"] == 0

    assert max(history.colours.values()) < 16
    assert len(set(history.colours.values())) == len(history.colours)


@given(
    st.lists(
        st.tuples(st.floats(0.5, 900), st.lists(st.sampled_from("abc"), min_size=3, max_size=3)),
        min_size=1,
        max_size=40,
    )
)
def test_the_owners_at_each_time_that_is_kept_are_those_that_were_read(steps):
    """Whatever was forgotten, by time or by number."""
    history, at_s, read = History(moves_max=12), 0.0, []
    for step_s, owners in steps:
        at_s += step_s
        add(history, at_s, owners)
        read.append((at_s, dict(zip("012", owners, strict=True))))
        assert len(history.moves) <= 12
    for time_s, owners in read:
        if time_s >= history.begin_s:
            assert holders(history, time_s) == owners


def test_the_memory_is_bounded_however_long_it_runs():
    """Hours in which every owner changes in every reading, and readings fail now and then: each
    bound is reached, and 40 MB are not."""
    history = History()
    names = [f"processor-{n:030d}" for n in range(80)]
    rotations = [
        tuple(partition(str(n), names[(turn + n) % 80]) for n in range(80)) for turn in range(80)
    ]
    tracemalloc.start()
    try:
        for step in range(1400):
            at_s = step * 2.0 + (step // 5) * 12
            entry = Entry(at_s=at_s, kind="moved", text=f"at {at_s}")
            reading = group(at_s, rotations[step % 80], [])
            history.add(reading, sample(at_s), [entry], gap_s=10)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (len(history.moves), len(history.entries)) == (MOVES_MAX, ENTRIES_MAX)
    assert len(history.gaps) == GAPS_MAX
    assert len(history.samples) <= SAMPLES_MAX
    assert len(history.colours) == len(names)
    assert size < 40_000_000
