"""Writes our positions where an Azure SDK, or a program that uses one, goes on from them.

Each blob has offset and sequence number of the last handled event. A partition of which nothing was
handled gets none: its consumer begins where it is told to begin.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group, RenderableType

from checkpointstores.blob import _layout as layout
from checkpointstores.blob._container import BlobItem
from eventproc._base.logs import printable
from eventproc._base.tasks import in_parts
from eventproc._command.arguments.address import HubAddress
from eventproc._command.arguments.options import ChangeMode
from eventproc._command.foreign.blobs import find_blobs
from eventproc._command.foreign.container import ForeignContainer, container_at
from eventproc._command.foreign.kinds import KINDS
from eventproc._command.foreign.place import Place
from eventproc._command.group.connection import Connection
from eventproc._command.group.records import Record, group_json, title_of
from eventproc._command.terminal.console import cell, plain_table, standard_output
from eventproc._command.terminal.exits import FAILED, OK, print_error
from eventproc._core.delivery.checkpoints import BEFORE_FIRST_OFFSET
from eventproc._core.delivery.offset_format import offset_format_in
from eventproc.errors import ConfigurationError, StoreError, StoreUnavailableError
from eventproc.models import Checkpoint, ConsumerGroup, OffsetFormat, WriteOutcome

_EXACT: Final = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Departing:
    """The position of one partition, and what is in its place there."""

    partition_id: str
    blob: str
    offset: str
    sequence_number: int
    found: BlobItem | None

    @property
    def there(self) -> int | None:
        """The sequence number that is there now."""
        if self.found is None:
            return None
        return layout.position_in(self.found.metadata).sequence_number

    @property
    def is_needed(self) -> bool:
        """Whether another position is there, or none."""
        if self.found is None:
            return True
        there = layout.position_in(self.found.metadata)
        return (there.offset, there.sequence_number) != (self.offset, self.sequence_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """All positions of a group, on their way to a container."""

    container: ForeignContainer
    folder: str
    positions: Sequence[Departing]
    consumers: Sequence[str]
    stop: str
    notes: Sequence[str]

    def refusal(self, live: Sequence[str], *, overwrites: bool) -> str | None:
        """Return why nothing may be written, with the remedy; ``None``: it may."""
        if live:
            return f"processors of the group run: {', '.join(live)}. Stop them first"
        if self.consumers:
            return (
                f"its consumers run: {self.consumers[0]}. They go on from positions that they have "
                f"read before, so {self.stop}, and export then"
            )
        others = [each for each in self.positions if each.is_needed and each.found is not None]
        if others and not overwrites:
            return (
                f"{len(others)} of {len(self.positions)} partitions have another position there "
                f"(the first is {printable(others[0].blob)}): give --overwrite to replace them"
            )
        return None

    async def carry_out(self) -> dict[str, StoreError | None]:
        """Write what is needed; return an error, or ``None``, for each partition."""
        needed = [each for each in self.positions if each.is_needed]
        errors = await in_parts(self._write, needed)
        return {each.partition_id: e for each, e in zip(needed, errors, strict=True)}

    async def _write(self, position: Departing) -> StoreError | None:
        metadata = {
            "offset": position.offset,
            "sequencenumber": str(position.sequence_number),
        }
        answer = await self.container.write(
            position.blob,
            metadata,
            etag=None if position.found is None else position.found.etag,
            is_mine=lambda item: dict(item.metadata) == metadata,
        )
        if answer.outcome is WriteOutcome.WON:
            return None
        return answer.error or StoreUnavailableError(
            f"blob {printable(position.blob)} was written by another program meanwhile: try again"
        )


async def plan_departure(
    container: ForeignContainer,
    place: Place,
    ours: ConsumerGroup,
    records: Mapping[str, Record],
) -> Departure:
    """Compare our positions with those in the container.

    Raises:
        ConfigurationError: There is nothing to export, or a position cannot be used there.
        StoreError: The container cannot be read.
    """
    kind, group = KINDS[place.kind], place.group(ours)
    spelling = place.settings.get("names", kind.names_there)
    if spelling not in {"lower", _EXACT}:
        raise ConfigurationError(f"{place}: names={spelling}: give names=lower or names=exact")
    home = layout.home(group, exact_names=spelling == _EXACT)
    folder = layout.folder(home, layout.RecordKind.CHECKPOINT)
    listing = await container.list("")
    items = {item.name: item for item in listing.items}
    found = await find_blobs(container, listing, group)
    positions, notes = [], list[str]()
    for partition_id, record in records.items():
        blob = folder + partition_id
        notes += _lost_notes(record)
        offset, number = _position_of(record.checkpoint)
        if offset == BEFORE_FIRST_OFFSET:
            if blob in items:
                raise ConfigurationError(
                    f"nothing of partition {partition_id} was handled here, and blob "
                    f"{printable(blob)} has a position: delete it, or give another place"
                )
            notes.append(
                f"nothing of partition {partition_id} was handled, so it gets no position there: "
                "let its consumer begin at the oldest event"
            )
            continue
        positions.append(
            Departing(
                partition_id=partition_id,
                blob=blob,
                offset=offset,
                sequence_number=number,
                found=items.get(blob),
            )
        )
    return Departure(
        container=container,
        folder=folder,
        positions=positions,
        consumers=found.consumers,
        stop=kind.stop,
        notes=notes,
    )


def _position_of(checkpoint: Checkpoint) -> tuple[str, int]:
    partition_id = checkpoint.partition_id
    if checkpoint.offset is None or checkpoint.sequence_number is None:
        # Without a number there is nothing to count from.
        to = "+0" if checkpoint.offset is None else "N, the number of the next event,"
        raise ConfigurationError(
            f"the checkpoint of partition {partition_id} has no "
            f"{'offset' if checkpoint.offset is None else 'sequence number'}: "
            f"`eventproc checkpoints reset --partition {partition_id} --to {to}` completes it"
        )
    if offset_format_in(checkpoint) not in {None, OffsetFormat.AMQP}:
        raise ConfigurationError(
            f"partition {partition_id} is at {checkpoint.offset}, which no consumer over AMQP "
            "understands: only positions of Event Hubs over AMQP can be exported to it"
        )
    return checkpoint.offset, checkpoint.sequence_number


def _lost_notes(record: Record) -> list[str]:
    found = record.checkpoint
    notes = []
    if found.state or record.is_damaged:
        notes.append(f"the state of partition {found.partition_id} stays here")
    if found.completed:
        notes.append(
            f"partition {found.partition_id} has handled events after its position: they are "
            "delivered again there"
        )
    return notes


def departure_table(group: ConsumerGroup, departure: Departure) -> RenderableType:
    """What is written, as a table."""
    numbers = ("position", "there now")
    table = plain_table("partition", *numbers, numbers=numbers)
    for each in departure.positions:
        there = "none" if each.found is None else "as it is"
        if each.found is not None and each.is_needed:
            there = "no number" if each.there is None else f"{each.there:,}"
        table.add_row(cell(each.partition_id), f"{each.sequence_number:,}", there)
    return Group(title_of(group, f"\nto blobs {departure.folder}PARTITION"), table)


def departure_json(
    group: ConsumerGroup, departure: Departure, errors: Mapping[str, StoreError | None]
) -> dict[str, object]:
    """What is written, and whether it was, as JSON."""
    return {
        **group_json(group),
        "positions": [
            {
                "partition_id": each.partition_id,
                "blob": each.blob,
                "sequence_number": each.sequence_number,
                "offset": each.offset,
                "there_sequence_number": each.there,
                "is_needed": each.is_needed,
                "is_written": each.partition_id in errors and errors[each.partition_id] is None,
                "error": str(errors[each.partition_id]) if errors.get(each.partition_id) else None,
            }
            for each in departure.positions
        ],
    }


async def depart(
    connection: Connection,
    place: Place,
    address: HubAddress,
    records: Mapping[str, Record],
    live: Sequence[str],
    mode: ChangeMode,
    *,
    overwrites: bool,
) -> int:
    """Show what is written for another program, ask for confirmation, and write it.

    Returns the exit code.

    Raises:
        ConfigurationError: It is refused.
        StoreError: The container cannot be read.
    """
    async with container_at(place, address) as container:
        planned = await plan_departure(container, place, connection.group, records)
        mode.refuse("export", planned.refusal(live, overwrites=overwrites))
        for note in planned.notes:
            print_error(note)
        if mode.is_table:
            standard_output().print(departure_table(connection.group, planned))
        count, errors = sum(each.is_needed for each in planned.positions), {}
        if count and not mode.dry_run:
            if not await mode.confirmed(f"Write {count} positions?"):
                return FAILED
            errors = await planned.carry_out()
    failed = [error for error in errors.values() if error is not None]
    if not mode.is_table:
        print(json.dumps(departure_json(connection.group, planned, errors)))
    elif not count:
        print("Nothing to write: every position is already in place.")
    elif not mode.dry_run:
        print(f"{len(errors) - len(failed)} of {count} written.")
    for error in failed:
        print_error(str(error))
    return FAILED if failed else OK
