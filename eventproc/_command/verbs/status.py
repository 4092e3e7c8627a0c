"""``eventproc status``: show the partitions and members of a group."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Annotated

import typer

from eventproc._base.tasks import cancellation_kept
from eventproc._command.arguments import options
from eventproc._command.arguments.address import ShownAddress
from eventproc._command.arguments.grouped import DEFAULTS
from eventproc._command.group.connection import Connection, connect
from eventproc._command.group.fields import as_json, csv_rows
from eventproc._command.group.readings import read_group
from eventproc._command.group.tables import as_tables
from eventproc._command.group.view import GroupView, view_of
from eventproc._command.group.watch import RowOrder, select
from eventproc._command.group.watch import watch as watch_group
from eventproc._command.terminal.console import print_csv, standard_output
from eventproc._core.watching.causes import STUCK_AFTER_S, WatchRules
from eventproc._core.watching.findings import findings_of
from eventproc._core.watching.memory import Memory, remember
from eventproc.errors import ConfigurationError, StoreError
from eventproc.models import ConsumerGroup


async def status(
    *,
    address: ShownAddress,
    expiration: options.Expiration = DEFAULTS.ownership_expiration,
    output: options.RowFormat = options.RowsFormat.TABLE,
    sort: Annotated[
        RowOrder,
        typer.Option(help="The order of rows. With lag and checkpoint, the largest is first."),
    ] = RowOrder.PARTITION,
    partition: Annotated[
        list[str],
        typer.Option(
            "--partition",
            metavar="ID",
            help="Only this partition. Repeat it for more.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer wants a list, and it is not changed
    only: Annotated[
        str,
        typer.Option(
            "--filter",
            metavar="TEXT",
            help="Only partitions whose owner's id contains this text, and the partition with this "
            "id; unowned: those without an owner.",
        ),
    ] = "",
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Repeat until Ctrl+C; on a terminal, in place, with what fits on it: --sort and "
            "--filter choose what comes first.",
        ),
    ] = False,
    every: Annotated[
        options.ReadingInterval,
        typer.Option(help="With --watch: the time between two polls of the group."),
    ] = timedelta(seconds=2),
) -> None:
    """Show a group: owner, checkpoint, lag of each partition, pauses, members, resource holders.

    With --resources it shows the holders of resources.

    This only reads, and does not disturb the group. It asks the event hub as well, and shows the
    lag of each partition, in events; with --without-hub it asks only the store. `eventproc
    checkpoints lag` shows how old the oldest waiting event is. A process itself says whether it is
    healthy: `eventproc run --http`.

    Exit codes: 0 shown, 2 an option is wrong, 3 the store or the hub did not answer.
    """
    console = standard_output()
    can_be_redrawn = console.is_terminal and not console.is_dumb_terminal
    is_live = watch and output is options.RowsFormat.TABLE and can_be_redrawn
    header = True

    def show(view: GroupView) -> None:
        nonlocal header
        shown = select(view, sort, only)
        if output is options.RowsFormat.JSON:
            print(json.dumps(as_json(shown)), flush=True)
        elif output is options.RowsFormat.CSV:
            print_csv(csv_rows(shown, header=header))
            header = False
        else:
            console.print(as_tables(shown))

    async with connect(address) as connection:
        if output is not options.RowsFormat.TABLE:  # A table says it.
            await connection.note_absence()
        read = await _reader(connection, expiration, partition)
        if is_live:
            await watch_group(console, read, every=every, order=sort, text=only)
        show(await read())
        while watch:
            await asyncio.sleep(every.total_seconds())
            show(await read())


async def _reader(
    connection: Connection, expiration: timedelta, partition_ids: Sequence[str]
) -> Callable[[], Awaitable[GroupView]]:
    """Return what reads the group, with these partitions only, if there are any."""
    error_by_version: dict[tuple[str, str], str | None] = {}
    memory: Memory = {}
    others: Sequence[ConsumerGroup] | None = None
    rules = WatchRules(expiration_s=expiration.total_seconds(), stuck_after_s=STUCK_AFTER_S)

    async def read() -> GroupView:
        nonlocal memory, others
        with cancellation_kept():  # by Ctrl+C
            readings = await read_group(
                connection.store, connection.group, connection.source, error_by_version
            )
        view = view_of(connection.group, readings, expiration=expiration)
        live: frozenset[ConsumerGroup] | None = None
        if others is None:  # Once, because a container is listed for it.
            others = ()
            with suppress(StoreError):  # A credential may be for the group's own folder alone.
                others = await connection.other_groups(of_same_hub=view.is_recorded)
                if view.is_recorded:
                    live = await connection.running(others, expiration)
        view = replace(view, others=tuple(others), live_others=live)
        if not view.is_recorded:
            return view
        memory = remember(memory, view.watched)
        return replace(view, findings=findings_of(memory, view.watched, rules))

    async def read_some() -> GroupView:
        view = await read()
        rows = [row for row in view.partitions if row.partition_id in partition_ids]
        return replace(view, partitions=tuple(rows))

    if not partition_ids:
        return read
    view = await read()
    if view.group.is_of_resources:
        raise ConfigurationError(
            "--partition is for consumer groups; resources have names: give --filter NAME"
        )
    await connection.partition_ids(partition_ids, [row.partition_id for row in view.partitions])
    return read_some
