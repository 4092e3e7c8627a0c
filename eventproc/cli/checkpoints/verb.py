"""The verbs of ``eventproc checkpoints``."""

import asyncio
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from eventproc.cli import options
from eventproc.cli.checkpoints.changes import (
    Change,
    carry_out,
    changes_json,
    changes_table,
    plan_reset,
    standing_of,
    warnings_for,
)
from eventproc.cli.checkpoints.connection import Connection, Place
from eventproc.cli.checkpoints.file import ExportedGroup, as_text, exported, read_file
from eventproc.cli.checkpoints.records import (
    lags_json,
    lags_table,
    read_lags,
    read_records,
    records_json,
    records_table,
)
from eventproc.cli.checkpoints.targets import parse_target
from eventproc.cli.exits import FAILED, OK, complain
from eventproc.cli.values import parse_duration
from eventproc.errors import ConfigurationError, EventProcError
from eventproc.operator import Move

Partitions = Annotated[
    list[str],
    typer.Option(
        "--partition",
        metavar="ID",
        help="Only this one; may be given again. All by default.",
        show_default=False,
    ),
]
LookupGroup = Annotated[
    str,
    typer.Option(
        "--lookup-group",
        metavar="NAME",
        help="A consumer group that nobody reads: to look at single events without interrupting "
        "whoever reads the partition.",
        show_default=False,
    ),
]
Format = Annotated[options.OutputFormat, typer.Option("--format", help="json: for a program.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
KeepState = Annotated[
    bool,
    typer.Option(
        "--keep-state",
        help="Keep the handler's state, although it belongs to the position before. It is dropped "
        "otherwise.",
    ),
]


def list_(
    store: options.StoreSpec,
    eventhub: options.EventHub = "",
    consumer_group: options.ConsumerGroupName = "$Default",
    connection_string: options.ConnectionString = "",
    namespace: options.Namespace = "",
    storage_connection_string: options.StorageConnectionString = "",
    partition: Partitions = [],  # noqa: B006 - typer wants a list, and nobody changes it
    output: Format = options.OutputFormat.TABLE,
) -> int:
    """Show the checkpoints of a group: position, state, what is done above, who wrote it.

    Exit codes: 0 shown, 2 something given cannot work, 3 the store did not answer.
    """
    place = Place(
        store, eventhub, consumer_group, connection_string, namespace, storage_connection_string
    )

    async def show() -> int:
        async with place.open() as connection:
            if partition:
                known = await connection.store.list_checkpoints(connection.group)
                await connection.partition_ids(partition, [c.partition_id for c in known])
            records = await read_records(connection, partition)
            if output is options.OutputFormat.JSON:
                print(json.dumps(records_json(connection.group, records)))
            else:
                Console().print(records_table(connection.group, records))
        return OK

    return asyncio.run(show())


def lag(
    store: options.StoreSpec,
    eventhub: options.EventHub = "",
    consumer_group: options.ConsumerGroupName = "$Default",
    connection_string: options.ConnectionString = "",
    storage_connection_string: options.StorageConnectionString = "",
    partition: Partitions = [],  # noqa: B006 - typer wants a list, and nobody changes it
    lookup_group: LookupGroup = "",
    expiration: options.Expiration = "60s",
    output: Format = options.OutputFormat.TABLE,
) -> int:
    """Show how far the checkpoints are behind the hub: in events, and how old the oldest one is.

    The age needs a look at an event. Where somebody holds the partition that would interrupt it,
    so it is shown there only with --lookup-group.

    Exit codes: 0 shown, 2 something given cannot work, 3 the store or the hub did not answer.
    """
    place = Place(store, eventhub, consumer_group, connection_string, "", storage_connection_string)
    life = parse_duration("--expiration", expiration)

    async def show() -> int:
        async with place.open() as connection:
            lags = await read_lags(
                connection,
                partition,
                lookup_group=lookup_group,
                expiration=life,
                now=datetime.now(UTC),
            )
            if output is options.OutputFormat.JSON:
                print(json.dumps(lags_json(connection.group, lags)))
            else:
                Console().print(lags_table(connection.group, lags))
        return OK

    return asyncio.run(show())


def reset(
    store: options.StoreSpec,
    to: Annotated[
        str,
        typer.Option(
            metavar="TARGET",
            help="The first event to come: earliest, latest, a time (2026-01-31T08:00:00Z), a "
            "sequence number, or -100 / +100 for so many events back or on.",
        ),
    ],
    eventhub: options.EventHub = "",
    consumer_group: options.ConsumerGroupName = "$Default",
    connection_string: options.ConnectionString = "",
    storage_connection_string: options.StorageConnectionString = "",
    partition: Partitions = [],  # noqa: B006 - typer wants a list, and nobody changes it
    keep_state: KeepState = False,
    lookup_group: LookupGroup = "",
    expiration: options.Expiration = "60s",
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Format = options.OutputFormat.TABLE,
) -> int:
    """Have partitions begin somewhere else, forward or back, also while the group is at work.

    An owner drops what it holds, and begins anew from there at its next look at the group; it
    never writes over the reset. For times, numbers and steps a single event is looked at, which
    interrupts a reader of the partition for a moment, unless --lookup-group names another group.

    Exit codes: 0 done (or shown, with --dry-run), 1 not all could be moved or the answer was no,
    2 something given cannot work and nothing was changed, 3 the store or the hub did not answer.
    """
    place = Place(store, eventhub, consumer_group, connection_string, "", storage_connection_string)
    target = parse_target("--to", to)
    life = parse_duration("--expiration", expiration)

    async def move() -> int:
        async with place.open() as connection:
            changes = await plan_reset(
                connection,
                partition,
                target,
                keeps_state=keep_state,
                lookup_group=lookup_group,
                expiration=life,
            )
            return await _change(
                connection, changes, life, is_dry_run=dry_run, is_agreed=yes, output=output
            )

    return asyncio.run(move())


def set_(
    store: options.StoreSpec,
    partition: Annotated[str, typer.Option(metavar="ID", help="The partition.")],
    sequence_number: Annotated[
        int, typer.Option(metavar="N", help="Of the last event that counts as handled.")
    ],
    offset: Annotated[str, typer.Option(metavar="TEXT", help="Of the same event.")],
    eventhub: options.EventHub = "",
    consumer_group: options.ConsumerGroupName = "$Default",
    connection_string: options.ConnectionString = "",
    namespace: options.Namespace = "",
    storage_connection_string: options.StorageConnectionString = "",
    keep_state: KeepState = False,
    expiration: options.Expiration = "60s",
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Format = options.OutputFormat.TABLE,
) -> int:
    """Write one checkpoint to the letter, without asking the hub. Otherwise as reset.

    Exit codes: as of reset.
    """
    place = Place(
        store, eventhub, consumer_group, connection_string, namespace, storage_connection_string
    )
    life = parse_duration("--expiration", expiration)
    if sequence_number < -1 or not offset:
        raise ConfigurationError("give the --sequence-number and the --offset of an event")
    asked = Move(
        partition_id=partition,
        offset=offset,
        sequence_number=sequence_number,
        state=None if keep_state else b"",
    )

    async def move() -> int:
        async with place.open() as connection:
            if connection.source is not None:
                await connection.partition_ids([partition], ())
            changes = [(await standing_of(connection, life)).change(asked, None)]
            return await _change(
                connection, changes, life, is_dry_run=dry_run, is_agreed=yes, output=output
            )

    return asyncio.run(move())


def export(
    store: options.StoreSpec,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; - for standard output.")],
    eventhub: options.EventHub = "",
    consumer_group: options.ConsumerGroupName = "$Default",
    connection_string: options.ConnectionString = "",
    namespace: options.Namespace = "",
    storage_connection_string: options.StorageConnectionString = "",
) -> int:
    """Write the checkpoints of a group, with their states, to a file (JSON).

    Exit codes: 0 written, 2 something given cannot work, 3 the store did not answer.
    """
    place = Place(
        store, eventhub, consumer_group, connection_string, namespace, storage_connection_string
    )

    async def read() -> ExportedGroup:
        async with place.open() as connection:
            records = await read_records(connection)
            return exported(connection.group, records, exported_at=datetime.now(UTC))

    contents = asyncio.run(read())
    if file == "-":
        sys.stdout.write(as_text(contents))
        return OK
    try:
        Path(file).write_text(as_text(contents), "utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}") from error
    print(f"{len(contents.checkpoints)} checkpoints written to {file}")
    return OK


def import_(
    store: options.StoreSpec,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What export wrote.")],
    eventhub: options.EventHub = "",
    consumer_group: options.ConsumerGroupName = "$Default",
    connection_string: options.ConnectionString = "",
    namespace: options.Namespace = "",
    storage_connection_string: options.StorageConnectionString = "",
    partition: Partitions = [],  # noqa: B006 - typer wants a list, and nobody changes it
    another_hub: Annotated[
        bool,
        typer.Option(
            "--another-hub", help="Take positions of another event hub, as of a replica of it."
        ),
    ] = False,
    expiration: options.Expiration = "60s",
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Format = options.OutputFormat.TABLE,
) -> int:
    """Put checkpoints from a file into a group, here or in another store. Otherwise as reset.

    Exit codes: as of reset.
    """
    place = Place(
        store, eventhub, consumer_group, connection_string, namespace, storage_connection_string
    )
    life = parse_duration("--expiration", expiration)
    contents = read_file(file)
    found = {c.partition_id: c for c in contents.checkpoints}
    if not (another_hub or contents.is_of_hub(place.group())):
        raise ConfigurationError(
            f"{file} is of event hub {contents.eventhub!r} of {contents.namespace!r}: its "
            "positions mean nothing in another one; --another-hub takes them all the same"
        )

    async def move() -> int:
        async with place.open(creates_store=not dry_run) as connection:
            if connection.source is not None:
                await connection.partition_ids(list(found), ())
            strange = [p for p in partition if p not in found]
            if strange:
                raise ConfigurationError(f"{file} has no partition {strange[0]}")
            chosen = [found[p] for p in partition or found]
            for checkpoint in chosen:
                if checkpoint.state and not checkpoint.is_state_in_step:
                    complain(
                        f"the state of partition {checkpoint.partition_id} belongs to position "
                        f"{checkpoint.state_sequence_number}, and is left out"
                    )
            standing = await standing_of(connection, life)
            changes = [standing.change(checkpoint.as_move(), None) for checkpoint in chosen]
            return await _change(
                connection, changes, life, is_dry_run=dry_run, is_agreed=yes, output=output
            )

    return asyncio.run(move())


async def _change(
    connection: Connection,
    changes: Sequence[Change],
    expiration: timedelta,
    *,
    is_dry_run: bool,
    is_agreed: bool,
    output: options.OutputFormat,
) -> int:
    """Show what would change, ask, do it, and say what came of it."""
    is_table = output is options.OutputFormat.TABLE
    if not (is_table or is_dry_run or is_agreed):
        raise ConfigurationError("--format json cannot ask: give --yes, or --dry-run")
    console = Console()
    if is_table:
        console.print(changes_table(connection.group, changes))
        for warning in warnings_for(changes):
            console.print(warning)
    needed = [change for change in changes if change.is_needed]
    results = {}
    if needed and not is_dry_run:
        if not (is_agreed or await asyncio.to_thread(_ask, len(needed))):
            print("Nothing was changed.")
            return FAILED
        results = await carry_out(connection, needed, expiration=expiration)
    failed = {p: r for p, r in results.items() if isinstance(r, EventProcError)}
    if not is_table:
        print(json.dumps(changes_json(connection.group, changes, results)))
    elif not is_dry_run:
        told = {c.owner_id for c in needed if c.owner_id and c.move.partition_id not in failed}
        print(
            f"{len(results) - len(failed)} of {len(needed)} moved."
            + (f" {', '.join(sorted(told))}: begins anew at the next look." if told else "")
        )
    for error in failed.values():
        complain(str(error))
    return FAILED if failed else OK


def _ask(count: int) -> bool:
    """Wait for a yes or no on standard input; in a thread, for it takes as long as it takes."""
    print(f"Move {count} checkpoint{'s' * (count > 1)}? [y/N] ", end="", flush=True)
    answer = sys.stdin.readline()
    if not answer:
        print()
        raise ConfigurationError("nobody is there to ask: give --yes, or --dry-run")
    return answer.strip().lower() in {"y", "yes"}
