"""The screen of ``status --watch``, driven by keys."""

from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from textual.widgets import DataTable, Input, Static

from eventproc.cli.group.selection import RowOrder
from eventproc.cli.group.watch import GroupScreen
from eventproc.errors import StoreUnavailableError
from tests.unit.eventproc.cli.group.views import group_view, member, partition, resources_view

MANY = group_view(
    *(partition(n, f"host-{n % 4}", lag=n % 7) for n in range(40)),
    members=[member(f"host-{n}", 10) for n in range(4)],
)


OFTEN = timedelta(milliseconds=50)


class Group:
    """What the screen reads: a view that a test may change, or an error."""

    def __init__(self, view):
        self.view = view
        self.error = None

    async def read(self):
        """Return the view, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.view


@asynccontextmanager
async def shown(group, *, order=RowOrder.PARTITION, text="", every=timedelta(hours=1)):
    """Show a group on a terminal of 24 lines; yield the screen and its keys."""
    screen = GroupScreen(group.view, group.read, every, order, text)
    async with screen.run_test(size=(100, 24)) as keys:
        yield screen, keys


def partitions(screen):
    """Return the first column of the table of partitions."""
    table = screen.query_one("#partitions", DataTable)
    return [str(table.get_row_at(n)[0]) for n in range(table.row_count)]


def text_of(screen, name):
    """Return what a part of the screen says."""
    return str(screen.query_one(name, Static).content)


async def until(keys, is_so):
    """Let the screen run until a condition holds."""
    while not is_so():
        await keys.pause(0.01)


async def test_forty_partitions_on_24_rows_can_all_be_reached():
    """The table scrolls with its cursor; the members stay below it."""
    async with shown(Group(MANY)) as (screen, keys):
        table = screen.query_one("#partitions", DataTable)
        assert table.row_count == 40
        assert table.max_scroll_y > 0
        await keys.press("ctrl+end")
        await until(keys, lambda: table.scroll_offset.y == table.max_scroll_y)

        assert table.cursor_row == 39
        assert screen.query_one("#members", DataTable).row_count == 4


async def test_a_poll_keeps_the_cursor_and_what_is_scrolled_to():
    """Although the rows are new."""
    group = Group(MANY)
    async with shown(group, every=OFTEN) as (screen, keys):
        table = screen.query_one("#partitions", DataTable)
        await keys.press("ctrl+end")
        await until(keys, lambda: table.scroll_offset.y == table.max_scroll_y)
        group.view = group_view(*(partition(n, "other") for n in range(40)))
        await until(keys, lambda: str(table.get_row_at(0)[1]) == "other")
        await keys.pause()

        assert (table.cursor_row, table.scroll_offset.y) == (39, table.max_scroll_y)


async def test_s_sorts_by_the_next_column():
    """By lag, then by owner, then by the age of the checkpoint, then by partition again."""
    view = group_view(
        partition(0, "b", lag=1, age_s=9), partition(1, "a", lag=2), partition(2, None)
    )
    async with shown(Group(view)) as (screen, keys):
        found = [partitions(screen)]
        for _ in range(4):
            await keys.press("s")
            found.append(partitions(screen))

    assert ["".join(ids) for ids in found] == ["012", "102", "210", "012", "012"]


async def test_resources_have_neither_lag_nor_checkpoint_to_sort_by():
    """Only name and holder."""
    async with shown(Group(resources_view("b", "a"))) as (screen, keys):
        await keys.press("s")
        assert "sorted by owner" in text_of(screen, "#head")
        await keys.press("s")
        assert "sorted by partition" in text_of(screen, "#head")
        assert partitions(screen) == ["a", "b"]


async def test_a_filter_selects_while_it_is_typed_and_escape_ends_it():
    """Enter keeps the selection and returns to the table."""
    async with shown(Group(MANY)) as (screen, keys):
        await keys.press("slash", *"host-3")
        assert len(partitions(screen)) == 10
        await keys.press("enter")
        assert screen.focused is screen.query_one("#partitions")
        assert "10 of 40 partitions, those with 'host-3'" in text_of(screen, "#head")
        await keys.press("slash", "escape")

        assert len(partitions(screen)) == 40
        assert not screen.query_one("#filter", Input).has_class("shown")


async def test_order_and_filter_of_the_command_line_hold_from_the_start():
    """As for output that is not watched."""
    async with shown(Group(MANY), order=RowOrder.LAG, text="host-2") as (screen, _):
        assert partitions(screen)[:3] == ["6", "34", "26"]


async def test_a_poll_that_fails_is_reported_and_the_last_view_stays():
    """Until a poll succeeds again."""
    group = Group(MANY)
    async with shown(group, every=OFTEN) as (screen, keys):
        group.error = StoreUnavailableError("no answer within 5 s")
        await until(keys, lambda: "the last poll failed: no answer" in text_of(screen, "#damage"))
        assert len(partitions(screen)) == 40
        group.error = None

        await until(keys, lambda: not screen.query_one("#problems").display)


async def test_the_head_counts_partitions_without_an_owner_and_sums_the_lag():
    """An expired owner is none."""
    view = group_view(
        partition(0, lag=1200), partition(1, None, lag=30), partition(2, is_expired=True, lag=0)
    )
    async with shown(Group(view)) as (screen, _):
        assert "3 partitions, sorted by partition, 2 without an owner, lag 1,230" in text_of(
            screen, "#head"
        )


@pytest.mark.parametrize(("key", "is_interrupted"), [("q", False), ("ctrl+c", True)])
async def test_q_and_ctrl_c_end_it(key, is_interrupted):
    """The exit codes differ, as in other verbs."""
    async with shown(Group(MANY)) as (screen, keys):
        await keys.press(key)

    assert screen.is_interrupted is is_interrupted
