"""Move checkpoints: compute the changes, and carry them out.

The new position of every partition is computed before the user is asked to confirm, so that exactly
what was shown is written.
"""

import asyncio
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from eventproc._base.tasks import in_parts, together
from eventproc._command.group.connection import (
    NO_POSITIONS,
    Connection,
    event_at_or_before,
    first_event,
)
from eventproc._command.group.records import Record, bytes_text, read_records, state_text
from eventproc._command.group.targets import (
    Bounds,
    RelativeTarget,
    Target,
    known_offset,
    last_handled,
    refuse_future,
)
from eventproc._command.group.view import lag_of
from eventproc._core.delivery.checkpoints import BEFORE_FIRST_OFFSET, is_of_other_hub
from eventproc._core.delivery.offset_format import offset_format_in, offset_format_of
from eventproc._core.ownership.liveness import live_members
from eventproc._group.compatibility import NAMES
from eventproc.admin import (
    CheckpointExistsError,
    CheckpointMove,
    CheckpointMoved,
    live_owners,
    move_checkpoint,
)
from eventproc.errors import ConfigurationError, EventProcError
from eventproc.models import NOT_BEGUN, Checkpoint, OffsetFormat, PartitionProperties
from eventproc.ports import EventSource

AT_ONCE_MAX: Final = 16
"""The most checkpoints that are moved at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of one partition's checkpoint."""

    move: CheckpointMove
    before: int | None
    """The sequence number in the checkpoint now; ``None`` without a checkpoint."""

    events: int | None
    """How many events are skipped; negative if events are delivered again. ``None``: unknown."""

    state: str
    """What happens to the handler's state, in words; empty without a state."""

    owner_id: str | None
    """The owner of the partition, which will begin again from the new position."""

    is_foreign: bool
    """The owner is a processor of an Azure SDK, whose checkpoints are not conditional."""

    is_new: bool
    """The partition has no checkpoint yet."""

    is_needed: bool
    """False if the checkpoint is already as it should be."""

    is_of_former_hub: bool = False
    """The checkpoint is of a hub that was deleted: it covers no event of the present one."""

    lag_here: int | None = None
    """How many events the hub has after the checkpoint now; ``None``: the hub was not asked."""

    lag_there: int | None = None
    """How many events it has after the position of another program, if that is imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """The checkpoints, owners and members of a group before a change."""

    records: Mapping[str, Record]
    owner_by_partition: Mapping[str, str]
    present: frozenset[str]
    """Owners with a member record: processors of this library."""

    live: frozenset[str]
    """Owners that run: those with a fresh member record or a lease, of any SDK."""

    def _refuse_mixing(self, move: CheckpointMove) -> None:
        mine = offset_format_of(move.offset)
        formats = {mine, *(offset_format_in(record.checkpoint) for record in self.records.values())}
        if OffsetFormat.QUEUE in formats:
            raise ConfigurationError(NO_POSITIONS)
        for record in self.records.values():
            other = offset_format_in(record.checkpoint)
            if mine is not None and other not in {None, mine}:
                assert other is not None, "it is in the set"
                raise ConfigurationError(
                    f"offset {move.offset!r} is one of {NAMES[mine]}, but the checkpoint of "
                    f"partition {record.checkpoint.partition_id} has offset "
                    f"{record.checkpoint.offset!r}, one of {NAMES[other]}: all checkpoints of a "
                    "group must be of one protocol"
                )

    def change(
        self,
        move: CheckpointMove,
        end: PartitionProperties | None,
        hub_created_at: datetime | None = None,
    ) -> Change:
        """Return what a move changes.

        Args:
            move: The move.
            end: The partition's properties, if the hub was asked.
            hub_created_at: When the hub was created, if it says so.

        Raises:
            ConfigurationError: The offset is of another protocol than the group's checkpoints.
        """
        self._refuse_mixing(move)
        record = self.records.get(move.partition_id)
        found = None if record is None else record.checkpoint
        before = None if found is None else found.sequence_number
        owner_id = self.owner_by_partition.get(move.partition_id)
        is_former = found is not None and is_of_other_hub(found, end, hub_created_at)
        is_needed = record is None or is_former or not _is_in_place(record, move)
        handled = before
        if is_former:
            handled = None if end is None else Bounds.of(end).before_first
        return Change(
            move=move,
            before=before,
            events=_events_between(handled, move.sequence_number, end),
            state=_state_change(record, move) if is_needed else "",
            owner_id=owner_id,
            is_foreign=owner_id is not None and owner_id not in self.present,
            is_new=record is None,
            is_needed=is_needed,
            is_of_former_hub=is_former,
            lag_here=None if end is None else lag_of(end, found, hub_created_at),
        )


async def read_group_state(connection: Connection, expiration: timedelta) -> GroupState:
    """Read the checkpoints, owners and members of a group, to change it.

    Raises:
        ConfigurationError: Its positions cannot be moved.
    """
    connection.refuse_queues()
    present = await connection.store.list_members(connection.group)
    held = await live_owners(connection.store, connection.group, expiration)
    owners = {p: o.owner_id for p, o in held.items() if o.owner_id is not None}
    members = live_members(present, owners.values(), expiration)
    return GroupState(
        records=await read_records(connection),
        owner_by_partition=owners,
        present=frozenset(member.owner_id for member in present.members),
        live=frozenset(owners.values()) | {member.owner_id for member in members},
    )


def _events_between(before: int | None, after: int, end: PartitionProperties | None) -> int | None:
    """Count the events between two positions; only those that the hub still has, if known."""
    if before is None or end is None:
        return None if before is None else after - before
    bounds = Bounds.of(end)
    first, last = bounds.before_first, bounds.last
    return max(after, first) - min(max(before, first), last)


def _state_change(record: Record | None, move: CheckpointMove) -> str:
    has_state = record is not None and (record.is_damaged or bool(record.checkpoint.state))
    if move.state and record is not None and _is_same_state(record, move):
        return f"as it is ({bytes_text(len(move.state))})"
    if move.state:
        return f"{'replaced' if has_state else 'stored'} ({bytes_text(len(move.state))})"
    if record is None or not has_state:
        return ""
    return f"{'kept' if move.state is None else 'dropped'} ({state_text(record)})"


def _is_in_place(record: Record, move: CheckpointMove) -> bool:
    found = record.checkpoint
    is_in_step = not move.state or found.state_sequence_number == move.sequence_number
    is_state_in_place = move.state is None or (_is_same_state(record, move) and is_in_step)
    return (
        not record.is_damaged
        and (found.sequence_number, found.offset) == (move.sequence_number, move.offset)
        and found.completed == move.completed
        and found.isolation == NOT_BEGUN
        and is_state_in_place
    )


def _is_same_state(record: Record, move: CheckpointMove) -> bool:
    return not record.is_damaged and (move.state or None) == (record.checkpoint.state or None)


def import_refusal(
    changes: Sequence[Change], live: Collection[str], *, overwrites: bool, while_running: bool
) -> str | None:
    """Return why an import may not make these changes, with the remedy; ``None``: it may."""
    needed = [change for change in changes if change.is_needed]
    existing = [change.move.partition_id for change in needed if not change.is_new]
    if existing and not overwrites:
        return (
            f"{len(existing)} of {len(changes)} partitions have another checkpoint already (the "
            f"first is {existing[0]}): give --overwrite to replace them, or --partition for others"
        )
    if needed and live and not while_running:
        return (
            f"processors of the group run: {', '.join(sorted(live))}. Stop them first, or give "
            "--while-running, and each owner begins again at its new position"
        )
    return None


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
    """Compute the new position of each partition, and what it changes.

    Raises:
        ConfigurationError: The target is not possible for a partition; nothing was changed.
    """
    refuse_future(target, datetime.now(UTC))
    source = connection.source
    if source is None:
        raise ConfigurationError(
            "a reset needs to ask the hub for positions: give its connection string; or write a "
            "position that you know with `eventproc checkpoints set`"
        )
    current = await read_group_state(connection, expiration)
    ids = await connection.partition_ids(wanted, list(current.records))
    ends = await in_parts(source.partition_properties, ids)
    through = lookup_group or connection.group.name

    async def change(end: PartitionProperties) -> Change:
        record = current.records.get(end.partition_id)
        found = None if record is None else record.checkpoint
        if found is not None and is_of_other_hub(found, end, source.created_at):
            found = None  # Neither its number nor its offset means anything in this hub.
        offset, number = await _position(source, through, target, end, found)
        state = None if keeps_state else b""
        move = CheckpointMove(
            partition_id=end.partition_id, offset=offset, sequence_number=number, state=state
        )
        return current.change(move, end, source.created_at)

    return await in_parts(change, ends)


async def _position(
    source: EventSource,
    through: str,
    target: Target,
    end: PartitionProperties,
    checkpoint: Checkpoint | None,
) -> tuple[str, int]:
    """Return offset and sequence number of the last event before a target."""
    number = last_handled(target, end, checkpoint)
    if number is None:
        assert not isinstance(target, RelativeTarget), "only a time has to be looked up"
        number = (await first_event(source, through, end.partition_id, target)).sequence_number - 1
    return await event_before(source, through, number, end, checkpoint)


async def event_before(
    source: EventSource,
    through: str,
    number: int,
    end: PartitionProperties,
    checkpoint: Checkpoint | None = None,
) -> tuple[str, int]:
    """Return offset and number of the event with this number, or of the last one before it.

    Args:
        source: An open source.
        through: The consumer group to read through, if the event has to be read.
        number: The sequence number.
        end: The properties of the partition.
        checkpoint: The partition's checkpoint, whose event is known.
    """
    offset = known_offset(number, end, checkpoint)
    if offset is not None:
        return offset, number
    first = end.beginning_sequence_number
    event = await event_at_or_before(source, through, end.partition_id, number, first=first)
    if event is None:
        return BEFORE_FIRST_OFFSET, Bounds.of(end).before_first
    return event.offset, event.sequence_number


# --- writing -------------------------------------------------------------------------------------


async def carry_out(
    connection: Connection,
    changes: Sequence[Change],
    *,
    expiration: timedelta,
    replaces: bool = True,
) -> dict[str, CheckpointMoved | EventProcError]:
    """Make every change that is needed; if one fails, the others are still made.

    Without *replaces*, a checkpoint that another process wrote in between is an error.
    """
    token, slots = secrets.token_hex(8), asyncio.Semaphore(AT_ONCE_MAX)

    async def done(change: Change) -> CheckpointMoved | EventProcError:
        async with slots:
            try:
                return await move_checkpoint(
                    connection.store,
                    connection.group,
                    change.move,
                    token=token,
                    expiration=expiration,
                    replaces=replaces,
                )
            except CheckpointExistsError as error:
                return CheckpointExistsError(f"{error}; give --overwrite to replace it")
            except EventProcError as error:
                return error

    needed = [change for change in changes if change.is_needed]
    results = await together(*map(done, needed))
    return {c.move.partition_id: result for c, result in zip(needed, results, strict=True)}
