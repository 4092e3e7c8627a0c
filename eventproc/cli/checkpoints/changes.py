"""Moving checkpoints: what would change, the question whether to, and the doing.

Rule: where each partition shall stand is settled before anybody is asked, and that is what is done.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eventproc.admission import NAMES
from eventproc.cli.checkpoints.connection import Connection
from eventproc.cli.checkpoints.lookup import event_at_or_before, first_event
from eventproc.cli.checkpoints.records import (
    Record,
    group_json,
    read_records,
    state_text,
    title_of,
)
from eventproc.cli.checkpoints.targets import (
    Bounds,
    Steps,
    Target,
    known_offset,
    last_handled,
)
from eventproc.core.numbering import numbering_in, numbering_of
from eventproc.core.progress import BEFORE_FIRST_OFFSET
from eventproc.errors import ConfigurationError, EventProcError
from eventproc.models import Checkpoint, ConsumerGroup, PartitionProperties
from eventproc.operator import Move, Moved, live_owners, move_checkpoint
from eventproc.ports import EventSource

AT_ONCE_MAX: Final = 16
"""Partitions that are moved at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to become of one partition's checkpoint."""

    move: Move
    before: int | None
    """The sequence number that stands there now; ``None`` where none does."""

    events: int | None
    """So many events are left out; below zero, so many come again. ``None``: nobody can tell."""

    state: str
    """What becomes of the state, in words; empty where there is none."""

    owner_id: str | None
    """Who holds the partition now, and is told."""

    is_foreign: bool
    """The owner is a processor of another SDK, whose checkpoints are not conditional."""

    is_needed: bool
    """False where everything stands as it should already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How things stand in a group before a change."""

    records: Mapping[str, Record]
    owner_by_partition: Mapping[str, str]
    present: frozenset[str]
    """Owners with a presence record: processors of this library."""

    def _refuse_mixing(self, move: Move) -> None:
        mine = numbering_of(move.offset)
        for record in self.records.values():
            other = numbering_in(record.checkpoint)
            if mine is not None and other not in {None, mine}:
                assert other is not None, "it is in the set"
                raise ConfigurationError(
                    f"offset {move.offset!r} is one of {NAMES[mine]}, but partition "
                    f"{record.checkpoint.partition_id} of the group stands at "
                    f"{record.checkpoint.offset!r}, one of {NAMES[other]}: a group keeps to one "
                    "protocol"
                )

    def change(self, move: Move, end: PartitionProperties | None) -> Change:
        """Say what a move changes; *end* is what the hub says, if it was asked.

        Raises:
            ConfigurationError: The group's positions are another protocol's than the move's.
        """
        self._refuse_mixing(move)
        record = self.records.get(move.partition_id)
        found = None if record is None else record.checkpoint
        before = None if found is None else found.sequence_number
        owner_id = self.owner_by_partition.get(move.partition_id)
        return Change(
            move=move,
            before=before,
            events=_events_between(before, move.sequence_number, end),
            state=_fate_of_state(record, move),
            owner_id=owner_id,
            is_foreign=owner_id is not None and owner_id not in self.present,
            is_needed=record is None or not _is_there(record, move),
        )


async def standing_of(connection: Connection, expiration: timedelta) -> Standing:
    """Read how things stand."""
    present = await connection.store.list_members(connection.group)
    held = await live_owners(connection.store, connection.group, expiration)
    return Standing(
        records=await read_records(connection),
        owner_by_partition={p: o.owner_id for p, o in held.items() if o.owner_id is not None},
        present=frozenset(member.owner_id for member in present.members),
    )


def _events_between(before: int | None, after: int, end: PartitionProperties | None) -> int | None:
    """Of those that the hub still has, if it was asked."""
    if before is None or end is None:
        return None if before is None else after - before
    bounds = Bounds.of(end)
    return after - min(max(before, bounds.before_first), bounds.last)


def _fate_of_state(record: Record | None, move: Move) -> str:
    has_state = record is not None and (record.is_damaged or bool(record.checkpoint.state))
    if move.state:
        return f"replaced ({len(move.state):,} bytes)"
    if record is None or not has_state:
        return ""
    return f"{'kept' if move.state is None else 'dropped'} ({state_text(record)})"


def _is_there(record: Record, move: Move) -> bool:
    found = record.checkpoint
    is_state_there = move.state is None or (move.state or None) == found.state
    return (
        not record.is_damaged
        and (found.sequence_number, found.offset) == (move.sequence_number, move.offset)
        and found.completed == move.completed
        and found.delivery_count == 0
        and is_state_there
    )


# --- from a target to changes --------------------------------------------------------------------


async def plan_reset(
    connection: Connection,
    wanted: Sequence[str],
    target: Target,
    *,
    keeps_state: bool,
    lookup_group: str,
    expiration: timedelta,
) -> list[Change]:
    """Find out where each partition would stand, and what that changes.

    Raises:
        ConfigurationError: A target makes no sense for a partition; nothing was changed.
    """
    source = connection.source
    if source is None:
        raise ConfigurationError(
            "where events are is asked of the hub: give its connection string; or write a position "
            "that you know with `eventproc checkpoints set`"
        )
    standing = await standing_of(connection, expiration)
    ids = await connection.partition_ids(wanted, list(standing.records))
    ends = await asyncio.gather(*(source.partition_properties(p) for p in ids))
    through = lookup_group or connection.group.name

    async def change(end: PartitionProperties) -> Change:
        record = standing.records.get(end.partition_id)
        found = None if record is None else record.checkpoint
        offset, number = await _position(source, through, target, end, found)
        state = None if keeps_state else b""
        move = Move(
            partition_id=end.partition_id, offset=offset, sequence_number=number, state=state
        )
        return standing.change(move, end)

    return list(await asyncio.gather(*map(change, ends)))


async def _position(
    source: EventSource,
    through: str,
    target: Target,
    end: PartitionProperties,
    checkpoint: Checkpoint | None,
) -> tuple[str, int]:
    """Offset and sequence number of the last event before a target."""
    number = last_handled(target, end, checkpoint)
    if number is None:
        assert not isinstance(target, Steps), "only a time has to be looked up"
        number = (await first_event(source, through, end.partition_id, target)).sequence_number - 1
    offset = known_offset(number, end, checkpoint)
    if offset is not None:
        return offset, number
    first = end.beginning_sequence_number
    event = await event_at_or_before(source, through, end.partition_id, number, first=first)
    if event is None:
        return BEFORE_FIRST_OFFSET, Bounds.of(end).before_first
    return event.offset, event.sequence_number


# --- doing ---------------------------------------------------------------------------------------


async def carry_out(
    connection: Connection, changes: Sequence[Change], *, expiration: timedelta
) -> dict[str, Moved | EventProcError]:
    """Make every change that is needed; one that fails hinders no other."""
    token, slots = secrets.token_hex(8), asyncio.Semaphore(AT_ONCE_MAX)

    async def done(change: Change) -> Moved | EventProcError:
        async with slots:
            try:
                return await move_checkpoint(
                    connection.store,
                    connection.group,
                    change.move,
                    token=token,
                    expiration=expiration,
                )
            except EventProcError as error:
                return error

    needed = [change for change in changes if change.is_needed]
    results = await asyncio.gather(*map(done, needed))
    return {c.move.partition_id: result for c, result in zip(needed, results, strict=True)}


# --- showing -------------------------------------------------------------------------------------


def changes_table(group: ConsumerGroup, changes: Sequence[Change]) -> RenderableType:
    """What would change, for people."""
    table = Table("partition", box=None, pad_edge=False, header_style="bold")
    table.add_column("from", justify="right")
    table.add_column("to", justify="right")
    table.add_column("events", justify="right")
    table.add_column("state")
    table.add_column("held by")
    for change in changes:
        table.add_row(
            change.move.partition_id,
            "none" if change.before is None else f"{change.before:,}",
            f"{change.move.sequence_number:,}" if change.is_needed else "as it is",
            _events_text(change.events),
            change.state,
            change.owner_id or "",
        )
    again = sum(-c.events for c in changes if c.events is not None and c.events < 0)
    skipped = sum(c.events for c in changes if c.events is not None and c.events > 0)
    table.add_row("all", "", "", _total_text(again, skipped), style="bold")
    return Group(title_of(group), table)


def _events_text(events: int | None) -> str:
    if events is None:
        return "?"
    return f"{abs(events):,} {'skipped' if events > 0 else 'again'}" if events else "0"


def _total_text(again: int, skipped: int) -> str:
    parts = [_events_text(-again)] * bool(again) + [_events_text(skipped)] * bool(skipped)
    return ", ".join(parts) or "0"


def changes_json(
    group: ConsumerGroup,
    changes: Sequence[Change],
    results: Mapping[str, Moved | EventProcError],
) -> dict[str, object]:
    """What changed, or would change, for programs."""
    return {
        **group_json(group),
        "changes": [
            _change_json(change, results.get(change.move.partition_id)) for change in changes
        ],
    }


def _change_json(change: Change, result: Moved | EventProcError | None) -> dict[str, object]:
    events = change.events
    return {
        "partition_id": change.move.partition_id,
        "from_sequence_number": change.before,
        "to_sequence_number": change.move.sequence_number,
        "to_offset": change.move.offset,
        "skipped_count": None if events is None else max(0, events),
        "repeated_count": None if events is None else max(0, -events),
        "state": change.state,
        "owner_id": change.owner_id,
        "is_needed": change.is_needed,
        "is_moved": isinstance(result, Moved),
        "told_owner_id": result.told_owner_id if isinstance(result, Moved) else None,
        "error": str(result) if isinstance(result, EventProcError) else None,
    }


def warnings_for(changes: Sequence[Change]) -> list[Text]:
    """What an operator should know before the answer."""
    foreign = sorted({c.owner_id for c in changes if c.is_foreign and c.owner_id is not None})
    warnings = [
        Text(
            f"{owner_id} has no presence record. If it is a processor of an Azure SDK, it may "
            "write a checkpoint over yours until it notices: better stop it first.",
            style="yellow",
        )
        for owner_id in foreign
    ]
    if any(change.state.startswith("kept") for change in changes):
        warnings.append(
            Text(
                "A state that is kept belongs to another position than the one it stands beside; "
                "handlers can tell by context.state_sequence_number.",
                style="yellow",
            )
        )
    return warnings
