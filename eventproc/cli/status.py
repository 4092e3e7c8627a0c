"""``eventproc status``: who owns what, how far each partition is, who is there."""

import asyncio
import json
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from eventproc.cli import options
from eventproc.cli.exits import OK
from eventproc.cli.group_name import group_of
from eventproc.cli.group_view import GroupView, MemberRow, PartitionRow, read_group, view_of
from eventproc.cli.sources import make_source
from eventproc.cli.stores import open_store
from eventproc.cli.values import parse_duration, spoken
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore, EventSource


def status(
    store: options.StoreSpec,
    eventhub: options.EventHub = "",
    consumer_group: options.ConsumerGroupName = "$Default",
    connection_string: options.ConnectionString = "",
    namespace: options.Namespace = "",
    storage_connection_string: options.StorageConnectionString = "",
    expiration: options.Expiration = "60s",
    output: Annotated[
        options.OutputFormat, typer.Option("--format", help="json: for a program.")
    ] = options.OutputFormat.TABLE,
    watch: Annotated[bool, typer.Option("--watch", help="Again and again, until Ctrl+C.")] = False,
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="Between two looks of --watch.")
    ] = "2s",
) -> int:
    """Show who owns what in a group, how far each partition is, and who is there.

    It only reads: no group notices that it is looked at. With a connection string it asks the
    event hub too, and shows how far each partition is behind (lag, in events).

    Exit codes: 0 shown, 2 something given cannot work, 3 the store or the hub did not answer.
    """
    source = make_source(connection_string, eventhub) if connection_string else None
    group = group_of(source, namespace, eventhub, consumer_group)
    opened = open_store(store, storage_connection_string=storage_connection_string, must_exist=True)
    life = parse_duration("--expiration", expiration)
    pause = parse_duration("--every", every) if watch else None
    console = Console()
    is_live = pause is not None and output is options.OutputFormat.TABLE and console.is_terminal
    with Live(console=console, screen=False, auto_refresh=False) if is_live else _Plain() as live:

        def show(view: GroupView) -> None:
            if output is options.OutputFormat.JSON:
                print(json.dumps(as_json(view)), flush=True)
            elif isinstance(live, Live):
                live.update(as_tables(view), refresh=True)
            else:
                console.print(as_tables(view))

        asyncio.run(_look(opened, group, source, life, pause, show))
    return OK


class _Plain:
    """Stands where a live display would: nothing to begin, nothing to end."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()


async def _look(
    store: CheckpointStore,
    group: ConsumerGroup,
    source: EventSource | None,
    expiration: timedelta,
    pause: timedelta | None,
    show: Callable[[GroupView], None],
) -> None:
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    async with store:
        if source is not None:
            await source.open()
        try:
            show(view_of(group, await read_group(store, group, source), expiration=expiration))
            # Python 3.11's wait_for may swallow the cancellation that Ctrl+C is, and Azure's client
            # waits by it; the task still knows.
            while pause is not None and not task.cancelling():
                await asyncio.sleep(pause.total_seconds())
                readings = await read_group(store, group, source)
                show(view_of(group, readings, expiration=expiration))
            if task.cancelling():
                raise asyncio.CancelledError
        finally:
            if source is not None:
                await source.close()


# --- for programs --------------------------------------------------------------------------------


def as_json(view: GroupView) -> dict[str, object]:
    """The view as JSON has it; ages are seconds."""
    return {
        "namespace": view.group.fully_qualified_namespace,
        "eventhub": view.group.eventhub_name,
        "consumer_group": view.group.name,
        "as_of": None if view.as_of is None else view.as_of.isoformat(),
        "lag": view.lag,
        "partitions": [_partition_json(row) for row in view.partitions],
        "members": [_member_json(row) for row in view.members],
    }


def _partition_json(row: PartitionRow) -> dict[str, object]:
    return {
        "partition_id": row.partition_id,
        "owner_id": row.owner_id,
        "is_expired": row.is_expired,
        "record_age_s": _seconds(row.record_age),
        "sequence_number": row.sequence_number,
        "checkpoint_age_s": _seconds(row.checkpoint_age),
        "lag": row.lag,
    }


def _member_json(row: MemberRow) -> dict[str, object]:
    return {
        "owner_id": row.owner_id,
        "partition_count": row.partition_count,
        "has_presence": row.has_presence,
        "is_leaving": row.is_leaving,
        "hands_over": row.hands_over,
        "version": row.version,
    }


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else round(span.total_seconds(), 3)


# --- for people ----------------------------------------------------------------------------------


def as_tables(view: GroupView) -> RenderableType:
    """The view as two tables, partitions and members, below a line that names the group."""
    group = view.group
    at = "" if view.as_of is None else f", {view.as_of:%Y-%m-%d %H:%M:%S} UTC by the store's clock"
    title = Text(
        f"consumer group {group.name} of event hub {group.eventhub_name}\n"
        f"{group.fully_qualified_namespace}{at}\n",
        overflow="fold",
    )
    if not view.partitions and not view.members:
        empty = "Nobody was ever here: no ownership, no checkpoint, no member in this store."
        return Group(title, Text(empty))
    return Group(title, _partition_table(view), Text(), _member_table(view))


def _partition_table(view: GroupView) -> Table:
    table = Table("partition", "owner", box=None, pad_edge=False, header_style="bold")
    for name in ("record", "position", "checkpoint", "lag"):
        table.add_column(name, justify="right")
    for row in view.partitions:
        table.add_row(
            row.partition_id,
            _owner(row),
            "" if row.record_age is None else f"{spoken(row.record_age)} ago",
            "" if row.sequence_number is None else f"{row.sequence_number:,}",
            "" if row.checkpoint_age is None else f"{spoken(row.checkpoint_age)} ago",
            "?" if row.lag is None else f"{row.lag:,}",
        )
    if view.lag is not None:
        table.add_row("all", "", "", "", "", f"{view.lag:,}", style="bold")
    return table


def _owner(row: PartitionRow) -> Text:
    if row.owner_id is None:
        return Text("nobody", style="yellow")
    if row.is_expired:
        return Text(f"{row.owner_id} (expired)", style="red")
    return Text(row.owner_id)


def _member_table(view: GroupView) -> Table:
    table = Table("member", box=None, pad_edge=False, header_style="bold")
    table.add_column("partitions", justify="right")
    table.add_column("remarks")
    for row in view.members:
        remarks = [f"eventproc {row.version}" if row.version else ""]
        if row.is_leaving:
            remarks.append("leaving")
        if not row.has_presence:
            remarks.append("no presence record: of another SDK, or it could not be written")
        elif not row.hands_over:
            remarks.append("does not hand over")
        table.add_row(row.owner_id, str(row.partition_count), ", ".join(filter(None, remarks)))
    return table
