"""Checkpoints as they are stored, and how far they are behind the hub; nothing here writes."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from eventproc._base.tasks import in_parts, parts_of
from eventproc._command.group.connection import Connection, first_event
from eventproc._command.group.view import in_order, lag_of
from eventproc._command.terminal.console import Fields, cell, format_duration, plain_table
from eventproc._core.delivery.checkpoints import (
    is_moved_by_operator,
    is_of_other_hub,
    pump_owner,
    starting_position,
)
from eventproc.admin import live_owners
from eventproc.errors import ConfigurationError, StoreCorruptError
from eventproc.models import (
    ALONE,
    IN_BATCH,
    IN_PART,
    NOT_BEGUN,
    Checkpoint,
    ConsumerGroup,
    EventPosition,
    Isolation,
    PartitionProperties,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A checkpoint, and whether its state could be read."""

    checkpoint: Checkpoint
    is_damaged: bool = False
    """The state cannot be read; only the position is known."""


RECORD_FIELDS: Final[Fields[Record]] = {
    "partition_id": lambda record: record.checkpoint.partition_id,
    "sequence_number": lambda record: record.checkpoint.sequence_number,
    "offset": lambda record: record.checkpoint.offset,
    "last_modified": lambda record: record.checkpoint.last_modified.isoformat(),
    "state_bytes": lambda record: len(record.checkpoint.state or b""),
    "state_sequence_number": lambda record: record.checkpoint.state_sequence_number,
    "is_state_damaged": lambda record: record.is_damaged,
    "completed": lambda record: [[done.first, done.last] for done in record.checkpoint.completed],
    "isolation": lambda record: str(record.checkpoint.isolation),
    "writer": lambda record: record.checkpoint.writer,
}


async def read_records(connection: Connection, wanted: Sequence[str] = ()) -> dict[str, Record]:
    """Read the group's checkpoints with their states, ordered by partition."""
    parts = [part async for part in records_in_parts(connection, wanted)]
    return {record.checkpoint.partition_id: record for part in parts for record in part}


async def records_in_parts(
    connection: Connection, wanted: Sequence[str] = ()
) -> AsyncIterator[Sequence[Record]]:
    """Read them as ``read_records``, some at a time, because of the states."""
    listed = {c.partition_id: c for c in await connection.store.list_checkpoints(connection.group)}
    ids = in_order([p for p in listed if not wanted or p in wanted])

    async def whole(partition_id: str) -> Record:
        try:
            found = await connection.store.read_checkpoint(connection.group, partition_id)
        except StoreCorruptError:
            return Record(checkpoint=listed[partition_id], is_damaged=True)
        return Record(checkpoint=found or listed[partition_id])

    async for part in parts_of(whole, ids):
        yield part


def title_of(group: ConsumerGroup, remark: str = "") -> Text:
    """Lines that name a group, with a remark after them."""
    if group.is_of_resources:
        return Text(f"resources of group {group.name}{remark}\n", overflow="fold")
    return Text(
        f"consumer group {group.name} of event hub {group.eventhub_name}\n"
        f"{group.fully_qualified_namespace}{remark}\n",
        overflow="fold",
    )


def group_json(group: ConsumerGroup) -> dict[str, object]:
    """The names of a group as JSON."""
    if group.is_of_resources:
        return {"group": group.name}
    return {
        "namespace": group.fully_qualified_namespace,
        "eventhub": group.eventhub_name,
        "consumer_group": group.name,
    }


def records_table(group: ConsumerGroup, records: Mapping[str, Record]) -> RenderableType:
    """The checkpoints as a table."""
    if not records:
        return Group(title_of(group), Text("This group has no checkpoints in this store."))
    numbers = ("position", "offset", "written (UTC)", "state", "done above", "begun")
    table = plain_table("partition", *numbers, "by", numbers=numbers)
    for partition_id, record in records.items():
        found = record.checkpoint
        table.add_row(
            cell(partition_id),
            "" if found.sequence_number is None else f"{found.sequence_number:,}",
            cell(found.offset or ""),
            f"{found.last_modified:%Y-%m-%d %H:%M:%S}",
            state_text(record),
            f"{_done_count(found):,}" if found.completed else "",
            _begun_text(found.isolation),
            cell(_writer_text(found)),
        )
    return Group(title_of(group), table)


def _begun_text(isolation: Isolation) -> str:
    """Return how the events after the position were delivered last."""
    texts = {NOT_BEGUN: "", IN_BATCH: "in a batch", IN_PART: "in a part", ALONE: "alone"}
    return texts.get(isolation, f"alone, {isolation.alone_count} times")


def state_text(record: Record) -> str:
    """The size of a state, and its own position if that is not the checkpoint's."""
    found = record.checkpoint
    if record.is_damaged:
        return "damaged"
    if not found.state:
        return ""
    is_in_step = found.state_sequence_number == found.sequence_number
    at = "" if is_in_step else f" of {found.state_sequence_number:,}"
    return f"{bytes_text(len(found.state))}{at}"


def bytes_text(count: int) -> str:
    """A number of bytes in words."""
    return f"{count:,} byte{'' if count == 1 else 's'}"


def _writer_text(checkpoint: Checkpoint) -> str:
    if checkpoint.writer is None:
        return "an Azure SDK"
    if is_moved_by_operator(checkpoint):
        return "an operator"
    return pump_owner(checkpoint.writer) or checkpoint.writer


def _done_count(checkpoint: Checkpoint) -> int:
    return sum(done.last - done.first + 1 for done in checkpoint.completed)


# --- lag -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far the checkpoint of one partition is behind the hub."""

    partition_id: str
    sequence_number: int | None
    last_sequence_number: int
    lag: int
    """Events; at most so many: between the numbers of a compacted hub some are gone."""

    oldest_age_s: float | None
    """The age of the oldest event after the checkpoint; ``None`` if that event was not read."""


LAG_FIELDS: Final = tuple(field.name for field in fields(Lag))


async def read_lags(
    connection: Connection,
    wanted: Sequence[str],
    *,
    lookup_group: str,
    expiration: timedelta,
    now: datetime,
) -> list[Lag]:
    """Compare the checkpoints with the hub.

    To learn the age of an event, it must be read, and opening a receiver interrupts the owner of
    the partition. So ages are read through *lookup_group*, or where the partition has no owner.
    """
    source = connection.source
    if source is None:
        raise ConfigurationError("the lag needs the hub: give its connection string")
    listed = {c.partition_id: c for c in await connection.store.list_checkpoints(connection.group)}
    held = await live_owners(connection.store, connection.group, expiration)
    ids = await connection.partition_ids(wanted, list(listed))
    ends = await in_parts(source.partition_properties, ids)

    async def lag(end: PartitionProperties) -> Lag:
        found = listed.get(end.partition_id)
        position = None if found is None else found.sequence_number
        events = lag_of(end, found, source.created_at)
        age_s = 0.0 if events == 0 else None
        through = lookup_group or ("" if end.partition_id in held else connection.group.name)
        if events and through:
            fits = found is not None and not is_of_other_hub(found, end, source.created_at)
            since = starting_position(found if fits else None, EventPosition.earliest())
            oldest = await first_event(source, through, end.partition_id, since)
            # In a compacted hub the numbers before it may have no event.
            left = end.last_enqueued_sequence_number - oldest.sequence_number + 1
            events = max(1, min(events, left))
            age_s = max(0.0, round((now - oldest.enqueued_time).total_seconds(), 3))
        return Lag(
            partition_id=end.partition_id,
            sequence_number=position,
            last_sequence_number=end.last_enqueued_sequence_number,
            lag=events,
            oldest_age_s=age_s,
        )

    return await in_parts(lag, ends)


def oldest_age_s(lags: Sequence[Lag]) -> float | None:
    """The age of the oldest event after any checkpoint; ``None`` if one was not read."""
    ages_s = [lag.oldest_age_s for lag in lags if lag.oldest_age_s is not None]
    return max(ages_s, default=0.0) if len(ages_s) == len(lags) else None


def lags_table(group: ConsumerGroup, lags: Sequence[Lag]) -> RenderableType:
    """The lags as a table."""
    numbers = ("position", "last in hub", "lag", "oldest age")
    table = plain_table("partition", *numbers, numbers=numbers)
    for lag in lags:
        table.add_row(
            cell(lag.partition_id),
            "" if lag.sequence_number is None else f"{lag.sequence_number:,}",
            f"{lag.last_sequence_number:,}",
            f"{lag.lag:,}",
            _age_text(lag.oldest_age_s),
        )
    total = sum(lag.lag for lag in lags)
    table.add_row("all", "", "", f"{total:,}", _age_text(oldest_age_s(lags)), style="bold")
    return Group(title_of(group), table)


def _age_text(age_s: float | None) -> str:
    if age_s is None:
        return "?"
    return format_duration(timedelta(seconds=age_s)) if age_s else ""


def lags_json(group: ConsumerGroup, lags: Sequence[Lag]) -> dict[str, object]:
    """The lags as JSON; ages in seconds."""
    return {
        **group_json(group),
        "partitions": list(map(asdict, lags)),
        "lag": sum(lag.lag for lag in lags),
        "oldest_age_s": oldest_age_s(lags),
    }
