"""A group on the whole terminal, read again and again; which rows are shown, in which order."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, NoReturn

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from eventproc._base.logs import printable
from eventproc._command.group.tables import (
    absence_lines,
    damage_lines,
    empty_text,
    finding_lines,
    member_table,
    partition_table,
    pause_lines,
    title_text,
)
from eventproc._command.group.view import GroupView
from eventproc._core.watching.group import WatchedPartition
from eventproc.errors import EventProcError


class RowOrder(StrEnum):
    """What partitions or resources are sorted by."""

    PARTITION = "partition"
    LAG = "lag"
    OWNER = "owner"
    CHECKPOINT = "checkpoint"


def _by_lag(row: WatchedPartition) -> tuple[bool, int]:
    return row.error is None, -(row.lag or 0)


def _by_owner(row: WatchedPartition) -> tuple[bool, str]:
    return row.owner_id is not None, row.owner_id or ""


def _by_checkpoint(row: WatchedPartition) -> float:
    return -(row.written_ago_s or 0.0)


_KEYS: Final[Mapping[RowOrder, Callable[[WatchedPartition], Any]]] = {
    RowOrder.LAG: _by_lag,
    RowOrder.OWNER: _by_owner,
    RowOrder.CHECKPOINT: _by_checkpoint,
}


def select(view: GroupView, order: RowOrder, text: str) -> GroupView:
    """Return the view with only the partitions that a text selects, sorted.

    Args:
        view: The view; its partitions are ordered by their ids.
        order: *lag* and *checkpoint* begin with the largest, and *lag* with damaged checkpoints;
            *owner* begins with partitions that have none. Equal ones stay ordered by their ids,
            or by the names of resources.
        text: A partition is selected if its id is this text, or if its owner's id or a
            resource's name contains it, in upper or lower case. Everything is, if it is empty.
    """
    rows = [row for row in view.partitions if not text or _is_selected(view, row, text.lower())]
    if view.group.is_of_resources:
        rows.sort(key=lambda row: row.name)
    if order in _KEYS:
        rows.sort(key=_KEYS[order])
    return replace(view, partitions=tuple(rows))


def _is_selected(view: GroupView, row: WatchedPartition, text: str) -> bool:
    if view.group.is_of_resources:
        is_named = text in row.name.lower()
    else:
        is_named = text == row.partition_id.lower()
    return is_named or text in (row.owner_id or "unowned").lower()


async def watch(
    console: Console,
    read: Callable[[], Awaitable[GroupView]],
    *,
    every: timedelta,
    order: RowOrder,
    text: str,
) -> NoReturn:
    """Show a group until this task is cancelled.

    A poll that fails is reported, and the last view stays until one succeeds.

    Args:
        console: A terminal.
        read: Reads the group; lets no cancellation be suppressed.
        every: The pause between two readings.
        order: What the partitions are sorted by.
        text: Selects partitions, as ``select`` says.

    Raises:
        EventProcError: the first poll failed.
    """
    view, error = await read(), ""
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(GroupScreen(view, order, text, error), refresh=True)
            await asyncio.sleep(every.total_seconds())
            try:
                view, error = await read(), ""
            except EventProcError as failure:
                error = printable(" ".join(str(failure).split()))


@dataclass(frozen=True)
class GroupScreen:
    """A view as high as the terminal: of tables that are longer, the first lines are shown."""

    view: GroupView
    order: RowOrder
    text: str
    """Selects partitions, as ``select`` says."""

    error: str
    """Why the last poll failed; empty if it did not."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give half of the height to the head at most, and a third to the members."""
        height = options.max_height

        def lines(part: RenderableType, count: int) -> list[list[Segment]]:
            found = console.render_lines(part, options.update(height=None), pad=False)
            if len(found) <= count:
                return found
            rest = Text(f"{len(found) - count + 1} more lines", style="dim")
            return [*found[: count - 1], *console.render_lines(rest, options, pad=False)[:1]]

        selected = select(self.view, self.order, self.text)
        head = lines(self._head(selected), height // 2)
        members = lines(member_table(self.view), max(3, height // 3))
        left = max(2, height - len(head) - len(members) - 1)
        partitions = lines(partition_table(selected), left)
        for line in [*head, *partitions, [], *members][:height]:
            yield from line
            yield Segment.line()

    def _head(self, selected: GroupView) -> Group:
        view = self.view
        total = self._total(selected) if view.partitions or view.members else empty_text(view)
        failed = [f"the last poll failed: {self.error}"] if self.error else []
        return Group(
            Text(title_text(view).strip(), overflow="fold"),
            Text(total, style="bold"),
            *_styled([*failed, *damage_lines(view)], "red"),
            *_styled(
                [*absence_lines(view), *pause_lines(view.pauses), *finding_lines(view)], "yellow"
            ),
        )

    def _total(self, selected: GroupView) -> str:
        view = self.view
        noun = "resources" if view.group.is_of_resources else "partitions"
        total = f"{len(view.partitions):,} {noun}"
        unowned = sum(row.owner_id is None or row.is_expired for row in view.partitions)
        if self.text:
            total = f"{len(selected.partitions):,} of {total}, those with {self.text!r}"
        parts = [total, f"sorted by {self.order}", f"{unowned:,} without an owner"]
        if view.lag is not None:
            parts.append(f"lag {view.lag:,}")
        return ", ".join(parts)


def _styled(lines: Sequence[str], style: str) -> list[Text]:
    return [Text(line, style=style, overflow="fold") for line in lines]
