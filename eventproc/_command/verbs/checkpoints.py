"""The verbs of ``eventproc checkpoints``."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, TextIO

import typer

from checkpointstores._fields import require_partition_id
from eventproc._base.logs import printable
from eventproc._command.arguments import options
from eventproc._command.arguments.address import GroupAddress, HubAddress
from eventproc._command.arguments.grouped import DEFAULTS
from eventproc._command.arguments.options import ChangeMode
from eventproc._command.foreign.arrival import read_arrival
from eventproc._command.foreign.kinds import settings_by_departure, settings_by_kind
from eventproc._command.foreign.place import parse_place
from eventproc._command.group.changes import (
    Change,
    carry_out,
    import_refusal,
    plan_reset,
    read_group_state,
)
from eventproc._command.group.connection import Connection, connect
from eventproc._command.group.file import (
    ReadFile,
    new_file,
    read_file,
    require_exportable,
    write_exported,
)
from eventproc._command.group.records import (
    LAG_FIELDS,
    RECORD_FIELDS,
    group_json,
    lags_json,
    lags_table,
    read_lags,
    read_records,
    records_in_parts,
    records_table,
)
from eventproc._command.group.shown_changes import changes_json, changes_table, warnings_for
from eventproc._command.group.targets import parse_target, require_event, require_of_hub
from eventproc._command.terminal.console import csv_lines, print_csv, rows_of, standard_output
from eventproc._command.terminal.exits import FAILED, OK, print_error
from eventproc._core.delivery.offset_format import offset_format_of
from eventproc.admin import CheckpointMove, CheckpointMoved
from eventproc.errors import ConfigurationError, EventProcError
from eventproc.models import OffsetFormat, PartitionProperties

Partitions = Annotated[
    list[str],
    typer.Option(
        "--partition",
        metavar="ID",
        help="Only this partition. Repeat it for more. By default all of them.",
        show_default=False,
    ),
]
LookupGroup = Annotated[
    str,
    typer.Option(
        "--lookup-group",
        metavar="NAME",
        help="A consumer group without processors: single events are read through it, so that the "
        "owner of the partition is not interrupted.",
        show_default=False,
    ),
]
KeepState = Annotated[
    bool,
    typer.Option(
        "--keep-state",
        help="Keep the handler's state, although it belongs to the former position. By default it "
        "is dropped.",
    ),
]


async def list_(
    *,
    address: GroupAddress,
    partition: Partitions = [],  # noqa: B006 - typer wants a list, and it is not changed
    output: options.RowFormat = options.RowsFormat.TABLE,
) -> None:
    """Show the checkpoints of a group: position, state, completed ranges and writer.

    Exit codes: 0 shown, 2 an option is wrong, 3 the store did not answer.
    """
    async with connect(address) as connection:
        if partition:
            known = await connection.store.list_checkpoints(connection.group)
            await connection.partition_ids(partition, [c.partition_id for c in known])
        records = await read_records(connection, partition)
        if not records:
            await connection.note_absence()
        rows = rows_of(RECORD_FIELDS, records.values())
        if output is options.RowsFormat.JSON:
            print(json.dumps({**group_json(connection.group), "checkpoints": rows}))
        elif output is options.RowsFormat.CSV:
            print_csv(csv_lines(rows, RECORD_FIELDS))
        else:
            standard_output().print(records_table(connection.group, records))


async def lag(
    *,
    address: HubAddress,
    partition: Partitions = [],  # noqa: B006 - typer wants a list, and it is not changed
    lookup_group: LookupGroup = "",
    expiration: options.Expiration = DEFAULTS.ownership_expiration,
    output: options.RowFormat = options.RowsFormat.TABLE,
) -> None:
    """Show how many events the checkpoints are behind the hub, and how old the oldest of them is.

    The age is the time since that event was published; the metric eventproc.lag.time compares the
    last handled event with the newest one. To read the event would interrupt the owner of the
    partition, so the age of one with an owner is shown only with --lookup-group.

    Exit codes: 0 shown, 2 an option is wrong, 3 the store or the hub did not answer.
    """
    async with connect(address) as connection:
        connection.refuse_queues()
        await connection.note_absence()
        lags = await read_lags(
            connection,
            partition,
            lookup_group=lookup_group,
            expiration=expiration,
            now=datetime.now(UTC),
        )
        if output is options.RowsFormat.JSON:
            print(json.dumps(lags_json(connection.group, lags)))
        elif output is options.RowsFormat.CSV:
            print_csv(csv_lines(map(asdict, lags), LAG_FIELDS))
        else:
            standard_output().print(lags_table(connection.group, lags))


async def reset(
    *,
    address: HubAddress,
    to: Annotated[
        str,
        typer.Option(
            metavar="TARGET",
            help="The next event to deliver: earliest, latest, a time (2026-01-31T08:00:00Z), a "
            "sequence number, or -100 / +100 for that many events before or after the one that "
            "follows the checkpoint: +1 skips one event.",
        ),
    ],
    partition: Partitions = [],  # noqa: B006 - typer wants a list, and it is not changed
    keep_state: KeepState = False,
    lookup_group: LookupGroup = "",
    expiration: options.Expiration = DEFAULTS.ownership_expiration,
    mode: ChangeMode,
) -> int:
    """Move checkpoints back, to replay events, or forward, to skip them, in a running group too.

    The owner of a partition begins again from the new position at its next poll of the group, and
    cannot overwrite it; no option is needed for that, unlike in `eventproc checkpoints import`. For
    times, sequence numbers and steps, a single event is read from the hub. This interrupts the
    owner for a moment, unless --lookup-group names another group.

    Exit codes: 0 moved (or shown, with --dry-run), 1 not all could be moved or the answer was no,
    2 an option is wrong and nothing was changed, 3 the store or the hub did not answer.
    """
    target = parse_target("--to", to)
    async with connect(address) as connection:
        await connection.note_absence()
        changes = await plan_reset(
            connection,
            partition,
            target,
            keeps_state=keep_state,
            lookup_group=lookup_group,
            expiration=expiration,
        )
        return await _change(connection, changes, expiration, mode)


async def set_(
    *,
    address: GroupAddress,
    partition: Annotated[str, typer.Option(metavar="ID", help="The partition.")],
    sequence_number: Annotated[
        int, typer.Option(metavar="N", help="Sequence number of the last handled event.")
    ],
    offset: Annotated[str, typer.Option(metavar="TEXT", help="Offset of the same event.")],
    keep_state: KeepState = False,
    expiration: options.Expiration = DEFAULTS.ownership_expiration,
    mode: ChangeMode,
) -> int:
    """Write the checkpoint of one partition at an event whose number and offset you know.

    A number after the partition's last event is refused; with --without-hub nothing is checked.
    Owners, confirmation and exit codes are as in `eventproc checkpoints reset`.
    """
    require_partition_id(partition)
    try:
        asked = CheckpointMove(
            partition_id=partition,
            offset=offset,
            sequence_number=sequence_number,
            state=None if keep_state else b"",
        )
    except ValueError as error:
        raise ConfigurationError(
            f"{error}; give --sequence-number and --offset of one event"
        ) from error
    async with connect(address) as connection:
        await connection.note_absence()
        current = await read_group_state(connection, expiration)
        end = created_at = None
        if connection.source is not None:
            await connection.partition_ids([partition], ())
            end = await connection.source.partition_properties(partition)
            require_event(sequence_number, end)
            created_at = connection.source.created_at
        changes = [current.change(asked, end, created_at)]
        return await _change(connection, changes, expiration, mode)


async def export(
    *,
    address: GroupAddress,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The file to write; - for standard output.", show_default=False
        ),
    ] = "",
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="KIND:PLACE",
            help="Instead of a file: where another program goes on from these positions. "
            "azure-sdk, functions, dapr or filebeat, with the container's name as PLACE. "
            "docs/migrate.md says how the names are spelled there.",
            show_default=False,
        ),
    ] = "",
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace the file, or the positions there."),
    ] = False,
    expiration: options.Expiration = DEFAULTS.ownership_expiration,
    mode: ChangeMode,
) -> int:
    """Write the checkpoints of a group to a file (JSON), or for another program to go on from.

    The file has states, too. With --to the command shows what it would write, and asks. It refuses
    while processors of the group, or consumers of the other program, are seen to run.

    Exit codes: 0 written (or shown, with --dry-run), 1 not all could be written or the answer was
    no, 2 an option is wrong and nothing was written, 3 the store did not answer.
    """
    if bool(file) == bool(to):
        raise ConfigurationError("give either a FILE to write, or --to KIND:PLACE")
    if file and mode != ChangeMode():
        raise ConfigurationError("--dry-run, --yes and --format are only for --to: leave them out")
    place = parse_place("--to", to, settings_by_departure()) if to else None
    async with connect(address) as connection:
        if place is not None:
            from eventproc._command.foreign.departure import depart  # noqa: PLC0415 - an extra

            records = await read_records(connection)
            require_exportable(connection.group, records.values())
            live = sorted((await read_group_state(connection, expiration)).live)
            return await depart(
                connection, place, address, records, live, mode, overwrites=overwrite
            )
        target: AbstractContextManager[TextIO] = nullcontext(sys.stdout)
        if file != "-":
            target = new_file(Path(file), overwrites=overwrite)
        with target as out:
            count = await write_exported(
                out,
                connection.group,
                records_in_parts(connection),
                exported_at=datetime.now(UTC),
            )
    if file != "-":
        print(f"{count} checkpoints written to {file}")
    return OK


async def import_(
    *,
    address: GroupAddress,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A file that export wrote.", show_default=False),
    ] = None,
    from_: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="KIND:PLACE",
            help="Instead of a file: where another program keeps its positions. azure-sdk, "
            "functions, event-processor-host, dapr or filebeat with the name of the container, "
            "spark, spark-connector or spark-kafka with the checkpointLocation, kafka with the "
            "Kafka group. docs/migrate.md says what may follow after a question mark.",
            show_default=False,
        ),
    ] = "",
    partition: Partitions = [],  # noqa: B006 - typer wants a list, and it is not changed
    another_hub: Annotated[
        bool,
        typer.Option(
            "--another-hub", help="Accept a file of another event hub, such as a replica."
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace checkpoints that the group has already.")
    ] = False,
    while_running: Annotated[
        bool,
        typer.Option(
            "--while-running",
            help="Write while processors of the group run: each owner then begins again at its new "
            "position. Without this option the import is refused.",
        ),
    ] = False,
    lookup_group: LookupGroup = "",
    expiration: options.Expiration = DEFAULTS.ownership_expiration,
    mode: ChangeMode,
) -> int:
    """Write checkpoints from a file to a group, or the positions that another program has stored.

    Checkpoints that are equal already stay as they are, so an import that ended halfway can be
    repeated. While processors of the group run, an import is refused without --while-running; while
    consumers of the other program are seen to run, it is always refused. With --from, the table
    shows the lag at your group's position and at that of the other program.
    Confirmation and exit codes are as in `eventproc checkpoints reset`.
    """
    if (file is None) == (not from_):
        raise ConfigurationError("give either a FILE that export wrote, or --from KIND:PLACE")
    given = None if file is None else _own_file(file, address, partition, another_hub=another_hub)
    place = parse_place("--from", from_, settings_by_kind()) if from_ else None
    question = ""
    async with connect(address, creates_store=not mode.dry_run) as connection:
        ends: dict[str, PartitionProperties] = {}
        created_at = None
        if given is not None and connection.source is not None:
            wanted = partition or [c.partition_id for c in given.contents.checkpoints]
            wanted = await connection.partition_ids(wanted, ())
            found = await connection.source.properties_of(wanted)
            ends = {end.partition_id: end for end in found}
            created_at = connection.source.created_at
            _require_of_hub(given, ends, None if another_hub else created_at)
        current = await read_group_state(connection, expiration)
        if given is not None:
            changes = [
                current.change(move, ends.get(move.partition_id), created_at)
                for move in given.moves(partition)
            ]
        else:
            assert place is not None, "one of the two is given"
            arrival = await read_arrival(place, address)
            for note in arrival.notes:
                print_error(note)
            chosen, question = arrival.chosen(partition), arrival.question
            if not arrival.is_in_place(current, chosen):
                mode.refuse("import", arrival.refusal)
            changes = await arrival.changes(connection, current, chosen, lookup_group)
        refusal = import_refusal(
            changes, current.live, overwrites=overwrite, while_running=while_running
        )
        mode.refuse("import", refusal)
        if mode.is_table:
            print(f"{from_ or file}: {_counts(changes)}")
        return await _change(
            connection, changes, expiration, mode, replaces=overwrite, question=question
        )


def _own_file(
    file: Path, address: GroupAddress, partition: Sequence[str], *, another_hub: bool
) -> ReadFile:
    given = read_file(file)
    contents = given.contents
    if not (another_hub or contents.is_of_hub(address.group())):
        raise ConfigurationError(
            f"{file} is of event hub {contents.eventhub!r} of {contents.namespace!r}, and its "
            "positions are not valid in another hub; to import them into a replica, give "
            "--another-hub"
        )
    found = {c.partition_id: c for c in contents.checkpoints}
    for move in given.moves(partition):
        checkpoint = found[move.partition_id]
        if checkpoint.state and not checkpoint.is_state_in_step:
            print_error(
                f"the state of partition {checkpoint.partition_id} belongs to position "
                f"{checkpoint.state_sequence_number}, and is left out"
            )
    return given


def _require_of_hub(
    file: ReadFile, ends: Mapping[str, PartitionProperties], created_at: datetime | None
) -> None:
    """Refuse positions that the hub does not have, or had in a former life of its name."""
    for found in file.contents.checkpoints:
        number, end = found.sequence_number, ends.get(found.partition_id)
        if number is None or end is None:
            continue
        where = f"partition {found.partition_id} in {file.path}"
        since = found.last_modified or file.contents.exported_at
        require_of_hub(where, number, since, created_at)
        if offset_format_of(found.offset) is not OffsetFormat.QUEUE:
            require_event(number, end)


def _counts(changes: Sequence[Change]) -> str:
    needed = [change for change in changes if change.is_needed]
    new = sum(change.is_new for change in needed)
    return (
        f"{len(changes)} checkpoints, {new} new, {len(needed) - new} that replace another one, "
        f"{len(changes) - len(needed)} in place already"
    )


async def _change(
    connection: Connection,
    changes: Sequence[Change],
    expiration: timedelta,
    mode: ChangeMode,
    *,
    replaces: bool = True,
    question: str = "",
) -> int:
    """Show the changes, ask for confirmation, carry them out, and print the results."""
    console = standard_output()
    if mode.is_table:
        console.print(changes_table(connection.group, changes))
        for warning in warnings_for(changes):
            console.print(warning)
    needed = [change for change in changes if change.is_needed]
    results: dict[str, CheckpointMoved | EventProcError] = {}
    if needed and not mode.dry_run:
        noun = "checkpoint" if len(needed) == 1 else "checkpoints"
        if not await mode.confirmed(f"{question}Move {len(needed)} {noun}?"):
            return FAILED
        results = await carry_out(connection, needed, expiration=expiration, replaces=replaces)
    failed = {p: r for p, r in results.items() if isinstance(r, EventProcError)}
    if not mode.is_table:
        print(json.dumps(changes_json(connection.group, changes, results)))
    elif not needed:
        print("Nothing to change: every checkpoint is already in place.")
    elif not mode.dry_run:
        owners = {c.owner_id for c in needed if c.owner_id and c.move.partition_id not in failed}
        named = printable(", ".join(sorted(owners)))
        begin_again = f" Owners begin again there: {named}." if owners else ""
        print(f"{len(results) - len(failed)} of {len(needed)} moved.{begin_again}")
    for error in failed.values():
        print_error(str(error))
    return FAILED if failed else OK
