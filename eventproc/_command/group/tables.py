"""A view of a group as tables for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eventproc._base.logs import printable
from eventproc._command.arguments.options import format_duration
from eventproc._command.group.records import title_of
from eventproc._command.group.view import GroupView, MemberRow, PartitionRow, SchemaRow, in_order
from eventproc._command.terminal.console import cell
from eventproc._core.ownership.pauses import Pause, Pauses
from eventproc._core.placement.even import Even
from eventproc._group.resources.names import name_of

CHECK_NAMES: Final = "check --eventhub, --consumer-group, --namespace and --store."
"""What to do if the store knows nothing of a hub's group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """A table as texts: the names of its columns, which of them are numbers, and its rows."""

    columns: Sequence[str]
    numbers: frozenset[str]
    rows: Sequence[Sequence[Text]]


def as_tables(view: GroupView) -> RenderableType:
    """The view as two tables, partitions and members, below the names of the group."""
    title = Text(title_text(view), overflow="fold")
    notes = [*absence_lines(view), *pause_lines(view.pauses)]
    pauses = [Text(line, style="yellow") for line in notes]
    if not view.partitions and not view.members:
        return Group(title, Text(empty_text(view)), *pauses)
    remarks = [*(Text(line, style="red") for line in damage_lines(view)), *pauses]
    partitions = as_table(partition_cells(view))
    if view.lag is not None:
        partitions.add_row("all", "", "", "", "", f"{view.lag:,}", style="bold")
    members: RenderableType = as_table(member_cells(view))
    if not view.members:
        members = Text("No members: no process of this group renews its records.")
    return Group(title, partitions, *remarks, Text(), members)


def title_text(view: GroupView) -> str:
    """The names of the group, the time of the view and what the group follows, in lines."""
    remark = f", {view.as_of:%Y-%m-%d %H:%M:%S} UTC by the store's clock"
    if view.placement is not None:
        remark += f", placement {printable(view.placement)}"
    if view.schema is not None:
        remark += f"\n{_schema_text(view.schema)}, leader {printable(view.schema.leader or 'none')}"
    return title_of(view.group, remark).plain


def empty_text(view: GroupView) -> str:
    """What is said of a group of which the store knows nothing."""
    if view.group.is_of_resources:
        return "This group has no resources and no members in this store."
    return (
        "This group has no ownership records, checkpoints or members in this store. If a process "
        f"of it has run, {CHECK_NAMES}"
    )


def damage_lines(view: GroupView) -> list[str]:
    """What of the group's records cannot be read, and the remedy."""
    lines = [
        printable(f"partition {row.partition_id} is not served: {row.checkpoint_error}")
        for row in view.partitions
        if row.checkpoint_error is not None
    ]
    if view.schema is not None and view.schema.error is not None:
        lines.append(printable(f"the schema cannot be read: {view.schema.error}"))
    return lines


def absence_lines(view: GroupView) -> list[str]:
    """What is said of a hub's group without records: its name may be mistyped."""
    is_known = view.members or any(
        row.record_age is not None or row.checkpoint_age is not None for row in view.partitions
    )
    if is_known or not view.partitions:
        return []
    return [f"No process of this group has run with this store yet. If one has, {CHECK_NAMES}"]


def named_pauses(pauses: Pauses) -> list[tuple[str, Pause]]:
    """What is paused, in words, each with its pause."""
    found = [] if pauses.group is None else [("the whole group", pauses.group)]
    return found + [
        (f"partition {p}", pauses.by_partition[p]) for p in in_order(pauses.by_partition)
    ]


def pause_lines(pauses: Pauses) -> list[str]:
    """What an operator paused, since when and why."""
    return [
        printable(f"{what} is paused since {pause.since:%Y-%m-%d %H:%M:%S} UTC: {pause.reason}")
        for what, pause in named_pauses(pauses)
    ]


def _schema_text(schema: SchemaRow) -> str:
    if schema.number is not None:
        return f"schema {schema.number}"
    return "no schema yet" if schema.error is None else "damaged schema"


def as_table(cells: Cells) -> Table:
    """A table for a terminal."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in cells.columns:
        table.add_column(name, justify="right" if name in cells.numbers else "left")
    for row in cells.rows:
        table.add_row(*row)
    return table


def partition_cells(view: GroupView) -> Cells:
    """The partitions or resources, in the order of the view."""
    if view.group.is_of_resources:
        return Cells(
            columns=("resource", "holder", "record", "epoch"),
            numbers=frozenset({"record", "epoch"}),
            rows=[
                (
                    cell(name_of(row.partition_id)),
                    _owner(row),
                    _record_age(row),
                    cell(str(row.epoch)),
                )
                for row in view.partitions
            ],
        )
    return Cells(
        columns=("partition", "owner", "record", "position", "checkpoint", "lag"),
        numbers=frozenset({"record", "position", "checkpoint", "lag"}),
        rows=[
            (
                cell(row.partition_id),
                _owner(row),
                _record_age(row),
                cell("" if row.sequence_number is None else f"{row.sequence_number:,}"),
                _checkpoint(row),
                cell("?" if row.lag is None else f"{row.lag:,}"),
            )
            for row in view.partitions
        ],
    )


def _record_age(row: PartitionRow) -> Text:
    return cell("" if row.record_age is None else f"{format_duration(row.record_age)} ago")


def _checkpoint(row: PartitionRow) -> Text:
    if row.checkpoint_error is not None:
        return cell("not served", style="red")
    return cell("" if row.checkpoint_age is None else f"{format_duration(row.checkpoint_age)} ago")


def _owner(row: PartitionRow) -> Text:
    if row.owner_id is None:
        return cell("unowned", style="yellow")
    if row.is_expired:
        return cell(f"{row.owner_id} (expired)", style="red")
    if row.pause is not None:
        return cell(f"{row.owner_id} (paused)", style="yellow")
    return cell(row.owner_id)


def member_cells(view: GroupView) -> Cells:
    """The members; what their placements regard has columns where it is not the default."""
    count = "resources" if view.group.is_of_resources else "partitions"
    extra = _placement_columns(view.members)
    rows = []
    for number, row in enumerate(view.members):
        remarks = [f"eventproc {row.version}" if row.version else ""]
        if row.is_leaving:
            remarks.append("leaving")
        if not row.has_member_record:
            remarks.append("no member record: a foreign member, or the record could not be written")
        elif not row.hands_over:
            remarks.append("does not hand over")
        values = [column[number] for column in extra.values()]
        text = ", ".join(filter(None, remarks))
        rows.append(
            [cell(each) for each in (row.owner_id, str(row.partition_count), *values, text)]
        )
    return Cells(
        columns=("member", count, *extra, "remarks"),
        numbers=frozenset({count, *extra} - {"placement"}),
        rows=rows,
    )


def _placement_columns(rows: Sequence[MemberRow]) -> dict[str, list[str]]:
    """The columns that have something to say, with a text for each member."""
    columns: dict[str, list[str]] = {}
    if any(row.placement not in {None, Even().name} for row in rows):
        columns["placement"] = [row.placement or "" for row in rows]
        if any(row.ordinal is not None for row in rows):
            columns["ordinal"] = ["" if row.ordinal is None else str(row.ordinal) for row in rows]
    if any(row.weight != 1 for row in rows):
        columns["weight"] = [f"{row.weight:g}" if row.has_member_record else "" for row in rows]
    if any(row.capacity is not None for row in rows):
        columns["capacity"] = ["" if row.capacity is None else str(row.capacity) for row in rows]
    return columns
