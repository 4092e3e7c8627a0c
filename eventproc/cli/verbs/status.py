"""``eventproc status``: show the partitions and members of a group."""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from eventproc.cli.arguments import options
from eventproc.cli.arguments.address import ShownAddress
from eventproc.cli.arguments.grouped import DEFAULTS
from eventproc.cli.arguments.values import format_duration
from eventproc.cli.group.connection import Connection, connect
from eventproc.cli.group.records import group_json, title_of
from eventproc.cli.group.view import (
    GroupView,
    MemberRow,
    PartitionRow,
    SchemaRow,
    read_group,
    view_of,
)
from eventproc.cli.terminal.exits import OK
from eventproc.core.placement.even import Even
from eventproc.resources.names import name_of


def status(
    *,
    address: ShownAddress,
    expiration: options.Expiration = DEFAULTS.ownership_expiration,
    output: options.Format = options.OutputFormat.TABLE,
    watch: Annotated[bool, typer.Option("--watch", help="Repeat until Ctrl+C.")] = False,
    every: Annotated[
        timedelta, typer.Option(help="With --watch: the time between two polls of the group.")
    ] = timedelta(seconds=2),
) -> int:
    """Show the owner and the checkpoint of each partition, and the members of a group.

    With --resources it shows the holder of each resource, and with --lease that of one lease.

    This only reads, and does not disturb the group. It asks the event hub as well, and shows the
    lag of each partition, in events; with --without-hub it asks only the store.

    Exit codes: 0 shown, 2 an option is wrong, 3 the store or the hub did not answer.
    """
    console = Console()
    is_live = watch and output is options.OutputFormat.TABLE and console.is_terminal
    connecting = connect(address)
    display = Live(console=console, screen=False, auto_refresh=False) if is_live else None
    with display or nullcontext():

        def show(view: GroupView) -> None:
            if output is options.OutputFormat.JSON:
                print(json.dumps(as_json(view)), flush=True)
            elif display is not None:
                display.update(as_tables(view), refresh=True)
            else:
                console.print(as_tables(view))

        asyncio.run(_poll(connecting, expiration, every if watch else None, show))
    return OK


async def _poll(
    connecting: AbstractAsyncContextManager[Connection],
    expiration: timedelta,
    pause: timedelta | None,
    show: Callable[[GroupView], None],
) -> None:
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    error_by_version: dict[tuple[str, str], str | None] = {}
    async with connecting as connection:
        while True:
            readings = await read_group(
                connection.store, connection.group, connection.source, error_by_version
            )
            show(view_of(connection.group, readings, expiration=expiration))
            # Ctrl+C cancels this task. Azure's client awaits wait_for, which in Python 3.11 may
            # swallow the cancellation; task.cancelling() still counts it.
            if task.cancelling():
                raise asyncio.CancelledError
            if pause is None:
                return
            await asyncio.sleep(pause.total_seconds())


# --- JSON ----------------------------------------------------------------------------------------


def as_json(view: GroupView) -> dict[str, object]:
    """The view as JSON; ages are in seconds."""
    return {
        **group_json(view.group),
        "as_of": view.as_of.isoformat(),
        "placement": view.placement,
        **({} if view.schema is None else {"schema": asdict(view.schema)}),
        **(
            {"resources": [_resource_json(row) for row in _by_name(view)]}
            if _has_names(view)
            else {
                "lag": view.lag,
                "partitions": [_partition_json(row) for row in view.partitions],
            }
        ),
        "members": [asdict(row) for row in view.members],
    }


def _partition_json(row: PartitionRow) -> dict[str, object]:
    return {
        "partition_id": row.partition_id,
        "owner_id": row.owner_id,
        "is_expired": row.is_expired,
        "record_age_s": _seconds(row.record_age),
        "sequence_number": row.sequence_number,
        "checkpoint_age_s": _seconds(row.checkpoint_age),
        "checkpoint_error": row.checkpoint_error,
        "lag": row.lag,
    }


def _resource_json(row: PartitionRow) -> dict[str, object]:
    return {
        "name": name_of(row.partition_id),
        "owner_id": row.owner_id,
        "epoch": row.epoch,
        "is_expired": row.is_expired,
        "record_age_s": _seconds(row.record_age),
    }


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else round(span.total_seconds(), 3)


# --- tables --------------------------------------------------------------------------------------


def as_tables(view: GroupView) -> RenderableType:
    """The view as two tables, partitions and members, below the names of the group."""
    remark = f", {view.as_of:%Y-%m-%d %H:%M:%S} UTC by the store's clock"
    if view.placement is not None:
        remark += f", placement {view.placement}"
    if view.schema is not None:
        remark += f"\n{_schema_text(view.schema)}, leader {view.schema.leader or 'none'}"
    title = title_of(view.group, remark)
    if not view.partitions and not view.members:
        empty = "This group has no ownership records, checkpoints or members in this store."
        if view.group.lease_id is not None:
            empty = "No process of this group has had or wants this lease, in this store."
        elif view.group.is_of_resources:
            empty = "This group has no resources and no members in this store."
        return Group(title, Text(empty))
    damage = [
        Text(f"partition {row.partition_id} is not served: {row.checkpoint_error}", style="red")
        for row in view.partitions
        if row.checkpoint_error is not None
    ]
    if view.schema is not None and view.schema.error is not None:
        damage.append(Text(f"the schema cannot be read: {view.schema.error}", style="red"))
    if _has_names(view):
        return Group(title, _resource_table(view), *damage, Text(), _member_table(view))
    return Group(title, _partition_table(view), *damage, Text(), _member_table(view))


def _schema_text(schema: SchemaRow) -> str:
    if schema.number is not None:
        return f"schema {schema.number}"
    return "no schema yet" if schema.error is None else "damaged schema"


def _has_names(view: GroupView) -> bool:
    """Whether the group shares names: resources, or a lease."""
    return view.group.is_of_resources or view.group.lease_id is not None


def _by_name(view: GroupView) -> list[PartitionRow]:
    return sorted(view.partitions, key=lambda row: name_of(row.partition_id))


def _resource_table(view: GroupView) -> Table:
    table = Table("resource", "holder", box=None, pad_edge=False, header_style="bold")
    for name in ("record", "epoch"):
        table.add_column(name, justify="right")
    for row in _by_name(view):
        age = "" if row.record_age is None else f"{format_duration(row.record_age)} ago"
        table.add_row(name_of(row.partition_id), _owner(row), age, str(row.epoch))
    return table


def _partition_table(view: GroupView) -> Table:
    table = Table("partition", "owner", box=None, pad_edge=False, header_style="bold")
    for name in ("record", "position", "checkpoint", "lag"):
        table.add_column(name, justify="right")
    for row in view.partitions:
        table.add_row(
            row.partition_id,
            _owner(row),
            "" if row.record_age is None else f"{format_duration(row.record_age)} ago",
            "" if row.sequence_number is None else f"{row.sequence_number:,}",
            _checkpoint(row),
            "?" if row.lag is None else f"{row.lag:,}",
        )
    if view.lag is not None:
        table.add_row("all", "", "", "", "", f"{view.lag:,}", style="bold")
    return table


def _checkpoint(row: PartitionRow) -> Text:
    if row.checkpoint_error is not None:
        return Text("damaged", style="red")
    return Text("" if row.checkpoint_age is None else f"{format_duration(row.checkpoint_age)} ago")


def _owner(row: PartitionRow) -> Text:
    if row.owner_id is None:
        return Text("unowned", style="yellow")
    if row.is_expired:
        return Text(f"{row.owner_id} (expired)", style="red")
    return Text(row.owner_id)


def _member_table(view: GroupView) -> Table:
    """The members; what their placements regard has columns where it is not the default."""
    table = Table("member", box=None, pad_edge=False, header_style="bold")
    table.add_column("resources" if _has_names(view) else "partitions", justify="right")
    extra = _placement_columns(view.members)
    for name in extra:
        table.add_column(name, justify="left" if name == "placement" else "right")
    table.add_column("remarks")
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
        table.add_row(row.owner_id, str(row.partition_count), *values, text)
    return table


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
