"""``eventproc pause`` and ``eventproc resume``: pause and resume a group, or some partitions."""

import json
from datetime import timedelta
from typing import Annotated

import typer

from eventproc._base.logs import printable
from eventproc._command.arguments import options
from eventproc._command.arguments.address import GroupAddress
from eventproc._command.arguments.grouped import DEFAULTS
from eventproc._command.group.connection import Connection, connect
from eventproc._command.group.records import group_json, title_of
from eventproc._command.group.tables import named_pauses, pause_lines
from eventproc._command.terminal.console import standard_output
from eventproc._core.ownership.liveness import fresh_owners, live_members
from eventproc._core.ownership.pauses import Pauses
from eventproc.admin import pause_group, read_pauses, resume_group
from eventproc.errors import StoreCorruptError
from eventproc.models import ConsumerGroup

Partitions = Annotated[
    list[str],
    typer.Option(
        "--partition",
        metavar="ID",
        help="Only this partition. Repeat it for more. By default the whole group.",
        show_default=False,
    ),
]


async def pause(
    *,
    address: GroupAddress,
    reason: Annotated[
        str,
        typer.Option(metavar="TEXT", help="Why, for everybody who looks at the group."),
    ],
    partition: Partitions = [],  # noqa: B006 - typer wants a list, and it is not changed
    new_group: Annotated[
        bool,
        typer.Option(
            "--new-group",
            help="Pause a group that has no records in the store yet, so that its processes start "
            "paused. Without this option such a group is refused, as its name may be mistyped.",
        ),
    ] = False,
    expiration: options.Expiration = DEFAULTS.ownership_expiration,
    output: options.Format = options.OutputFormat.TABLE,
) -> None:
    """Pause a group or some of its partitions: they stay owned, and nothing is received.

    Each process stops receiving at its next poll of the group; handler calls under way finish. All
    is quiet when /partitions of each process (`eventproc run --http`) shows the partition with
    "is_paused": true and "call_s": null; the store does not know of calls.

    The pause is kept in the store, so it lasts while partitions move and processes restart, until
    `eventproc resume`. `eventproc status` shows what is paused, since when and why. Groups with
    processors of an Azure SDK and groups of resources are refused.

    Exit codes: 0 paused, 2 an option is wrong or the group cannot be paused, 3 the store or the hub
    did not answer.
    """
    async with connect(address) as connection:
        if not new_group:
            await connection.require_records(
                ". To pause a group before its first process starts, give --new-group"
            )
        ids = await _known(connection, partition)
        pauses = await pause_group(
            connection.store, connection.group, ids, reason=reason, expiration=expiration
        )
        running = await _running(connection, expiration)
    _show(connection.group, pauses, output, running)


async def resume(
    *,
    address: GroupAddress,
    partition: Partitions = [],  # noqa: B006 - typer wants a list, and it is not changed
    output: options.Format = options.OutputFormat.TABLE,
) -> None:
    """Resume a group after `eventproc pause`, or only some of its partitions.

    Each process receives again from its next poll of the group on. While the whole group is paused,
    no single partition can be resumed.

    Exit codes: 0 resumed (or nothing was paused), 2 an option is wrong, 3 the store or the hub did
    not answer.
    """
    async with connect(address) as connection:
        await connection.require_records()
        ids = await _known(connection, partition)
        former = await _readable(connection)
        pauses = await resume_group(connection.store, connection.group, ids)
    _show_resumed(connection.group, former, pauses, output)


async def _known(connection: Connection, wanted: list[str]) -> list[str] | None:
    """Return the wanted partitions, after a check that they exist; ``None``: no option, so all."""
    if not wanted:
        return None
    known = {*(await connection.store.list_ownership(connection.group)).by_partition}
    known |= {c.partition_id for c in await connection.store.list_checkpoints(connection.group)}
    if connection.source is None:
        known |= {*(await read_pauses(connection.store, connection.group)).by_partition}
    return await connection.partition_ids(wanted, list(known))


async def _readable(connection: Connection) -> Pauses | None:
    """Return what is paused; ``None`` if the record is damaged."""
    try:
        return await read_pauses(connection.store, connection.group)
    except StoreCorruptError:
        return None


def _show_resumed(
    group: ConsumerGroup, former: Pauses | None, pauses: Pauses, output: options.OutputFormat
) -> None:
    """Print which pauses have ended, and what is still paused."""
    ended = Pauses() if former is None else former.without(pauses)
    if output is options.OutputFormat.JSON:
        found = {"resumed": json.loads(ended.as_bytes()), "paused": json.loads(pauses.as_bytes())}
        print(json.dumps({**group_json(group), **found}))
        return
    lines = [printable(f"Resumed: {what}") for what, _ in named_pauses(ended)]
    if former is None:
        lines = ["The record of pauses was damaged, and is replaced: everything is resumed."]
    elif not lines:
        lines = ["None of it was paused: nothing has changed."]
    if former != pauses:
        lines.append("Processors follow at the next poll, within --interval (default 10 s).")
    _print(group, [*lines, *(pause_lines(pauses) or ["Nothing is paused."])])


async def _running(connection: Connection, expiration: timedelta) -> int:
    """Return how many processors of the group are alive, by the records in the store."""
    present = await connection.store.list_members(connection.group)
    owned = await connection.store.list_ownership(connection.group)
    owners = fresh_owners(owned, expiration).values()
    return len(live_members(present, owners, expiration))


def _show(
    group: ConsumerGroup,
    pauses: Pauses,
    output: options.OutputFormat,
    running: int,
) -> None:
    """Print what is paused, and how many processors follow."""
    if output is options.OutputFormat.JSON:
        found = {**group_json(group), "paused": json.loads(pauses.as_bytes())}
        print(json.dumps({**found, "running_processors": running}))
        return
    lines = pause_lines(pauses) or ["Nothing is paused."]
    if running:
        verb = "processor follows" if running == 1 else "processors follow"
        lines.append(f"{running} {verb} at the next poll, within --interval (default 10 s).")
    else:
        lines.append("No processor of the group is running; those that start follow the pause.")
    _print(group, lines)


def _print(group: ConsumerGroup, lines: list[str]) -> None:
    standard_output().print(title_of(group))
    for line in lines:
        standard_output().print(line, highlight=False, markup=False)
