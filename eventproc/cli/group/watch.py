"""A group on the whole terminal, read again and again. The only importer of ``textual``."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Input, Static

from eventproc.cli.group.selection import RowOrder, select
from eventproc.cli.group.tables import (
    Cells,
    absence_lines,
    damage_lines,
    empty_text,
    member_cells,
    partition_cells,
    pause_lines,
    title_text,
)
from eventproc.cli.group.view import GroupView
from eventproc.errors import EventProcError
from eventproc.logs import printable

ReadView = Callable[[], Awaitable[GroupView]]

ORDERS: Final = (RowOrder.PARTITION, RowOrder.LAG, RowOrder.OWNER, RowOrder.CHECKPOINT)
NAME_ORDERS: Final = (RowOrder.PARTITION, RowOrder.OWNER)
"""Resources have neither a lag nor a checkpoint."""


class GroupScreen(App[None]):
    """Partitions and members of a group in two tables that scroll, with a filter and an order.

    A poll that fails is reported in the head line, and the last view stays until one succeeds.
    """

    CSS = """
    #head { height: auto; padding: 0 1; }
    #problems { height: auto; max-height: 5; padding: 0 1; color: $text-error; }
    #partitions { height: 1fr; }
    #members { height: auto; max-height: 30%; }
    #filter { display: none; padding: 0 1; }
    #filter.shown { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "order", "sort"),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("escape", "unfilter", "all rows", show=False),
        Binding("q", "quit", "quit"),
        # As in the rest of the command, where Ctrl+C ends a verb with code 130.
        Binding("ctrl+c", "interrupt", "interrupt", show=False, priority=True),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self, first: GroupView, read: ReadView, every: timedelta, order: RowOrder, text: str
    ) -> None:
        """Show a view, and the newest one after each pause.

        Args:
            first: What is shown at first.
            read: Reads the group again.
            every: The pause between two readings.
            order: What the partitions are sorted by.
            text: Selects partitions, as ``select`` says.
        """
        super().__init__(ansi_color=True)
        self._view = first
        self._read = read
        self._every_s = every.total_seconds()
        self._order = order
        self._text = text
        self._error: str | None = None
        self.is_interrupted = False
        """Whether Ctrl+C ended it."""

    def compose(self) -> ComposeResult:
        """The head, the two tables, and the filter, which appears when it is asked for."""
        yield Static(id="head", markup=False)
        yield DataTable(id="partitions", cursor_type="row", zebra_stripes=True)
        with VerticalScroll(id="problems"):
            yield Static(id="damage", markup=False)
        yield DataTable(id="members", cursor_type="row")
        yield Input(
            self._text,
            placeholder="partition, or part of an owner's id; escape: all rows",
            id="filter",
            compact=True,
        )
        yield Footer()

    async def on_mount(self) -> None:
        """Show what was read, and begin to read again."""
        self._draw()
        self.query_one("#partitions").focus()
        self.set_interval(self._every_s, self._poll)

    async def _poll(self) -> None:
        try:
            self._view = await self._read()
        except EventProcError as error:
            self._error = printable(" ".join(str(error).split()))
        else:
            self._error = None
        self._draw()

    def action_order(self) -> None:
        """Sort by the next column."""
        orders = NAME_ORDERS if self._view.group.is_of_resources else ORDERS
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self._draw()

    def action_filter(self) -> None:
        """Show the filter, and type into it."""
        box = self.query_one("#filter", Input)
        box.add_class("shown")
        box.focus()

    def action_unfilter(self) -> None:
        """Show every row again."""
        self._text = self.query_one("#filter", Input).value = ""
        self._close_filter()

    def action_interrupt(self) -> None:
        """End it as Ctrl+C ends other verbs."""
        self.is_interrupted = True
        self.exit()

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Select rows while the text is typed."""
        self._text = changed.value.strip()
        self._draw()

    def on_input_submitted(self) -> None:
        """Keep the selection, and return to the table."""
        self._close_filter()

    def _close_filter(self) -> None:
        self.query_one("#filter").set_class(bool(self._text), "shown")
        self.query_one("#partitions").focus()

    def _draw(self) -> None:
        if not self.query("#head"):
            return  # A poll that ends while the screen closes.
        shown = select(self._view, self._order, self._text)
        self.query_one("#head", Static).update(self._head(shown))
        problems = [] if self._error is None else [f"the last poll failed: {self._error}"]
        problems += damage_lines(self._view)
        problems += [*absence_lines(self._view), *pause_lines(self._view.pauses)]
        self.query_one("#damage", Static).update("\n".join(problems))
        self.query_one("#problems").display = bool(problems)
        _fill(self.query_one("#partitions", DataTable), partition_cells(shown))
        _fill(self.query_one("#members", DataTable), member_cells(self._view))

    def _head(self, shown: GroupView) -> str:
        view = self._view
        lines = [title_text(view).strip()]
        if not view.partitions and not view.members:
            return "\n".join([*lines, empty_text(view)])
        noun = "resources" if view.group.is_of_resources else "partitions"
        total = f"{len(view.partitions):,} {noun}"
        unowned = sum(row.owner_id is None or row.is_expired for row in view.partitions)
        if len(shown.partitions) < len(view.partitions):
            total = f"{len(shown.partitions):,} of {total}, those with {self._text!r}"
        parts = [total, f"sorted by {self._order}", f"{unowned:,} without an owner"]
        if view.lag is not None:
            parts.append(f"lag {view.lag:,}")
        return "\n".join([*lines, ", ".join(parts)])


def _fill(table: DataTable[Text], cells: Cells) -> None:
    """Replace the rows, and keep the cursor and what is scrolled to."""
    if [str(column.label) for column in table.ordered_columns] != list(cells.columns):
        table.clear(columns=True)
        for name in cells.columns:
            table.add_column(Text(name, justify="right" if name in cells.numbers else "left"))
    row, offset = table.cursor_row, table.scroll_offset
    table.clear()
    for line in cells.rows:
        for name, cell in zip(cells.columns, line, strict=True):
            cell.justify = "right" if name in cells.numbers else "left"
        table.add_row(*line)
    table.move_cursor(row=min(row, max(0, len(cells.rows) - 1)), scroll=False)
    table.scroll_to(offset.x, offset.y, animate=False)
