"""A group on the whole terminal: which rows are shown, in which order, and how many of them fit."""

import asyncio
from datetime import timedelta
from io import StringIO
from itertools import pairwise

import pytest
from rich.console import Console

from eventproc._command.group.watch import GroupScreen, RowOrder, select, watch
from eventproc.errors import StoreUnavailableError
from tests.unit.eventproc._command.group.views import group_view, member, partition, resources_view

VIEW = group_view(
    partition(0, "host-1", lag=5, age_s=1),
    partition(1, None, lag=70, age_s=90),
    partition(2, "host-12", lag=9, age_s=30),
    partition(11, "Host-2", lag=9, age_s=30),
)


def ids(view):
    """Return the ids of a view's partitions."""
    return [row.partition_id for row in view.partitions]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (RowOrder.PARTITION, ["0", "1", "2", "11"]),
        (RowOrder.LAG, ["1", "2", "11", "0"]),
        (RowOrder.OWNER, ["1", "11", "0", "2"]),
        (RowOrder.CHECKPOINT, ["1", "2", "11", "0"]),
    ],
)
def test_rows_are_sorted_and_equal_ones_stay_ordered_by_partition(order, expected):
    """Lag and age begin with the largest, owners with partitions that have none."""
    assert ids(select(VIEW, order, "")) == expected


def test_by_lag_a_damaged_checkpoint_comes_first():
    """Its partition is not served, whatever its lag is."""
    view = group_view(partition(0, lag=9), partition(1, lag=None, error="damaged"))

    assert ids(select(view, RowOrder.LAG, "")) == ["1", "0"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["0", "1", "2", "11"]),
        ("1", ["0", "1", "2"]),  # the partition 1, and owners with a 1 in their names
        ("11", ["11"]),
        ("HOST-1", ["0", "2"]),
        ("host-2", ["11"]),
        ("unowned", ["1"]),
        ("nothing", []),
    ],
)
def test_a_text_selects_one_partition_and_owners_that_contain_it(text, expected):
    """In upper or lower case; the id of a partition must be the whole text."""
    assert ids(select(VIEW, RowOrder.PARTITION, text)) == expected


def test_resources_are_selected_and_sorted_by_their_names():
    """Part of a name is enough, unlike the id of a partition."""
    view = resources_view("sms/b", "sms/a", "mail/a")

    assert ids(select(view, RowOrder.PARTITION, "SMS/")) == ids(resources_view("sms/a", "sms/b"))


def test_the_lag_of_a_selection_is_that_of_its_partitions():
    """So the row of totals fits the rows above it."""
    assert select(VIEW, RowOrder.LAG, "host-1").lag == 14


MANY = group_view(
    *(partition(n, f"host-{n % 4}", lag=n % 7) for n in range(40)),
    members=[member(f"host-{n}", 10) for n in range(4)],
)
EMPTY = group_view()


def terminal(width=100, height=24):
    return Console(
        file=StringIO(),
        force_terminal=True,
        color_system=None,
        width=width,
        height=height,
        _environ={"TERM": "xterm"},
    )


def shown(view, *, order=RowOrder.PARTITION, text="", error="", width=100, height=24):
    """Return the lines of a screen."""
    console = terminal(width, height)
    console.print(GroupScreen(view, order, text, error))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def shown_ids(lines):
    """Return the first column of the table of partitions."""
    return [line.split()[0] for line in lines if " ago " in line]


@pytest.mark.parametrize(("width", "height"), [(100, 24), (40, 24), (40, 12), (20, 5)])
@pytest.mark.parametrize("error", ["", "no answer within 5 s: is the store at this address?"])
def test_forty_partitions_fit_into_any_terminal(width, height, error):
    """The first ones are shown, and how many lines are not."""
    lines = shown(MANY, width=width, height=height, error=error)

    assert len(lines) <= height
    assert any("more lines" in line for line in lines)


def test_the_members_and_the_number_of_other_lines_are_below_the_partitions():
    """On 24 lines there is room for both tables."""
    lines = shown(MANY)

    assert shown_ids(lines) == [str(n) for n in range(len(shown_ids(lines)))]
    assert f"{40 - len(shown_ids(lines))} more lines" in lines
    assert sum("10" in line.split() for line in lines[-4:]) == 4


def test_order_and_filter_choose_what_is_shown():
    """As for output that is not watched."""
    lines = shown(MANY, order=RowOrder.LAG, text="host-2")

    assert shown_ids(lines)[:3] == ["6", "34", "26"]
    assert "10 of 40 partitions, those with 'host-2', sorted by lag" in " ".join(lines)


def test_the_head_counts_partitions_without_an_owner_and_sums_the_lag():
    """An expired owner is none."""
    view = group_view(
        partition(0, lag=1200), partition(1, None, lag=30), partition(2, is_expired=True, lag=0)
    )

    assert "3 partitions, sorted by partition, 2 without an owner, lag 1,230" in shown(view)


def test_a_group_without_records_is_said_to_have_none():
    """In place of the counts."""
    assert "has no ownership records, checkpoints or members" in " ".join(shown(EMPTY))


async def test_a_poll_that_fails_is_reported_and_the_last_view_stays():
    """Until a poll succeeds again; a cancellation, as by Ctrl+C, ends it."""
    console = terminal()
    polled: asyncio.Queue[str] = asyncio.Queue()
    answers = [MANY, StoreUnavailableError("no answer"), MANY]

    async def read():
        polled.put_nowait(console.file.getvalue())
        answer = answers.pop(0) if answers else MANY
        if isinstance(answer, Exception):
            raise answer
        return answer

    watching = asyncio.create_task(
        watch(
            console, read, every=timedelta(milliseconds=1), order=RowOrder.PARTITION, text="host-1"
        )
    )
    written = [await polled.get() for _ in range(5)]
    watching.cancel()
    await asyncio.wait([watching])
    drawn = [after.removeprefix(before) for before, after in pairwise(written)]

    assert watching.cancelled()
    assert ["the last poll failed: no answer" in screen for screen in drawn] == [
        False,
        True,
        False,
        False,
    ]
    assert all("10 of 40 partitions" in screen for screen in drawn)


async def test_a_first_poll_that_fails_ends_it():
    """There is nothing to show."""

    async def read():
        raise StoreUnavailableError("no answer")

    with pytest.raises(StoreUnavailableError):
        await watch(terminal(), read, every=timedelta(seconds=1), order=RowOrder.PARTITION, text="")
