"""The demo's accounts: compared with counting one by one, and with journals that were cut off."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from eventproc.cli.demo.journal import JournalReader, JournalWriter, covered, make_accounts, runs

ranges = st.tuples(st.integers(0, 30), st.integers(0, 10)).map(lambda r: (r[0], r[0] + r[1]))


@given(st.lists(ranges))
def test_covered_counts_every_number_once(given_ranges):
    """However the ranges overlap or repeat."""
    numbers = {n for first, last in given_ranges for n in range(first, last + 1)}

    assert covered(given_ranges) == len(numbers)


@given(st.sets(st.integers(0, 40)).map(sorted))
def test_runs_contain_exactly_the_given_numbers(numbers):
    """In as few ranges as possible."""
    joined = runs(numbers)

    assert [n for first, last in joined for n in range(first, last + 1)] == numbers
    assert all(b[0] > a[1] + 1 for a, b in pairwise(joined))


@given(
    st.dictionaries(st.sampled_from("012"), ranges),
    st.lists(st.tuples(st.sampled_from("0123"), ranges)),
)
def test_accounts_agree_with_counting_one_by_one(published, handled):
    """Each published event is handled or lost; each delivery beyond the first is a duplicate."""
    events = {(p, n) for p, (first, last) in published.items() for n in range(first, last + 1)}
    deliveries = Counter(
        (p, n) for p, (first, last) in handled for n in range(first, last + 1) if (p, n) in events
    )
    accounts = make_accounts(published, handled)

    assert accounts.published == len(events)
    assert accounts.handled == len(deliveries)
    assert accounts.lost == len(events - deliveries.keys())
    assert accounts.duplicates == deliveries.total() - len(deliveries)


def test_each_journal_entry_is_read_once(tmp_path):
    """With its writer's name, in order."""
    reader = JournalReader(tmp_path)
    writer = JournalWriter(tmp_path / "A.journal")
    writer.note("3", [5, 6, 7, 9])
    first = reader.read()
    writer.note("3", [10])
    second = reader.read()
    writer.close()

    assert first == [("A", "3", (5, 7)), ("A", "3", (9, 9))]
    assert second == [("A", "3", (10, 10))]
    assert reader.read() == []


def test_an_incomplete_line_is_read_when_it_is_complete(tmp_path):
    """Its process may be writing, or was killed."""
    path = tmp_path / "A.journal"
    reader = JournalReader(tmp_path)
    path.write_text("0 1 2\n0 3")
    first = reader.read()
    path.write_text("0 1 2\n0 3 44\n")

    assert first == [("A", "0", (1, 2))]
    assert reader.read() == [("A", "0", (3, 44))]
