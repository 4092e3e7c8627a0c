"""Turns what another program's place has into moves of our checkpoints.

A checkpoint has offset and sequence number of one event. Where only one of them is known, the event
is read from the hub; that interrupts the owner of the partition in the same consumer group.
"""

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from eventproc._base.tasks import in_parts
from eventproc._command.arguments.address import HubAddress
from eventproc._command.foreign.found import FoundGroup, FoundPosition
from eventproc._command.foreign.kafka import kafka_source, require_same_event, topic_at
from eventproc._command.foreign.kinds import KINDS, Kind
from eventproc._command.foreign.place import Place
from eventproc._command.group.changes import Change, GroupState, event_before
from eventproc._command.group.connection import Connection, first_event
from eventproc._command.group.targets import Bounds, require_event, require_of_hub
from eventproc._core.delivery.offset_format import offset_format_of
from eventproc.admin import CheckpointMove
from eventproc.errors import ConfigurationError
from eventproc.models import EventPosition, OffsetFormat, PartitionProperties
from eventproc.ports import EventSource


@dataclass(frozen=True, slots=True)
class Arrival:
    """The positions of another program's group, on their way to ours."""

    place: Place
    address: HubAddress
    found: FoundGroup

    @property
    def kind(self) -> Kind:
        """The program."""
        return KINDS[self.place.kind]

    @property
    def notes(self) -> Sequence[str]:
        """What the user should know."""
        return [*filter(None, [self.kind.note]), *self.found.notes]

    @property
    def question(self) -> str:
        """What the user has to confirm, because the place does not show it."""
        return "" if self.kind.shows_life else f"Did you {self.kind.stop}? "

    @property
    def refusal(self) -> str | None:
        """Why nothing may be imported yet, with the remedy; ``None``: it may."""
        if not self.found.consumers:
            return None
        first, *more = self.found.consumers
        others = f", and {len(more)} more such" if more else ""
        return (
            f"its consumers run: {first}{others}. Both would read every event from now on, so "
            f"{self.kind.stop}, and import then"
        )

    def chosen(self, wanted: Collection[str]) -> list[FoundPosition]:
        """Return the positions of the wanted partitions, or all.

        Raises:
            ConfigurationError: A wanted partition has none, or nothing was found.
        """
        if not self.found.positions:
            remarks = "".join(f"; {note}" for note in self.found.notes[:1])
            raise ConfigurationError(
                f"{self.place}: no position of this group was found there{remarks}. Check the "
                "place, and the names of namespace, event hub and consumer group: "
                "?namespace=, ?eventhub= and ?group= give those that the other program has"
            )
        by_partition = {found.partition_id: found for found in self.found.positions}
        for partition_id in wanted:
            if partition_id not in by_partition:
                raise ConfigurationError(
                    f"{self.place} has no position of partition {partition_id}"
                )
        return [by_partition[partition_id] for partition_id in wanted or by_partition]

    def is_in_place(self, current: GroupState, chosen: Sequence[FoundPosition]) -> bool:
        """Whether these positions are the group's already, as in a container that both use."""
        ours = {p: record.checkpoint for p, record in current.records.items()}
        return all(
            (checkpoint := ours.get(found.partition_id)) is not None
            and (checkpoint.offset, checkpoint.sequence_number)
            == (found.offset, found.sequence_number)
            for found in chosen
        )

    async def changes(
        self,
        connection: Connection,
        current: GroupState,
        chosen: Sequence[FoundPosition],
        lookup_group: str,
    ) -> list[Change]:
        """Return what an import of these positions changes, with the lag on both sides.

        Raises:
            ConfigurationError: A position is not of this hub, or the hub has to be asked.
            SourceError: The hub did not answer.
        """
        source = connection.source
        if source is None:
            return [current.change(_move(found), None) for found in chosen]
        self._require_protocol(source)
        await self._require_partitions(source, chosen)
        through = lookup_group or connection.group.name

        async def change(found: FoundPosition) -> Change:
            end = await source.partition_properties(found.partition_id)
            completed = await _completed(source, through, found, end)
            if kafka is not None and found.sequence_number is not None:
                await require_same_event(source, kafka, through, found.sequence_number, end)
            move = _move(completed)
            made = current.change(move, end, source.created_at)
            return replace(made, lag_there=_lag_after(move.sequence_number, end))

        kafka = self._kafka_beside(source)
        async with kafka or nullcontext():
            return await in_parts(change, chosen)

    def _require_protocol(self, source: EventSource) -> None:
        if self.kind.numbers is OffsetFormat.AMQP is not source.offset_format:
            raise ConfigurationError(
                f"{self.place} has numbers of Event Hubs over AMQP, and this group reads over "
                f"{source.offset_format.value}: give the connection string without kafka+"
            )

    def _kafka_beside(self, source: EventSource) -> EventSource | None:
        """Return the source over Kafka that shows what the numbers mean over AMQP."""
        is_other = self.kind.numbers is OffsetFormat.KAFKA is not source.offset_format
        return kafka_source(topic_at(self.place, self.address)) if is_other else None

    async def _require_partitions(
        self, source: EventSource, chosen: Sequence[FoundPosition]
    ) -> None:
        ids = set(await source.partition_ids())
        for found in chosen:
            if found.partition_id not in ids:
                raise ConfigurationError(
                    f"{found.where} is of partition {found.partition_id!r}, which event hub "
                    f"{source.eventhub_name!r} does not have: is it of another hub? To import some "
                    "of the partitions, give --partition"
                )


async def read_arrival(place: Place, address: HubAddress) -> Arrival:
    """Read the positions at a place.

    Raises:
        ConfigurationError: The place is not what its kind says, or cannot be read.
        StoreError: The storage account did not answer, or refuses.
    """
    return Arrival(place, address, await KINDS[place.kind].read(place, address))


def _move(found: FoundPosition) -> CheckpointMove:
    offset, number = found.offset, found.sequence_number
    if offset is None or number is None:
        raise ConfigurationError(
            f"{found.where} has no {'offset' if offset is None else 'sequence number'}, so the hub "
            "has to be asked for it: leave --without-hub out"
        )
    try:
        return CheckpointMove(
            partition_id=found.partition_id, offset=offset, sequence_number=number
        )
    except ValueError as error:
        raise ConfigurationError(f"{found.where}: {error}") from error


def _lag_after(number: int, end: PartitionProperties) -> int:
    bounds = Bounds.of(end)
    return bounds.last - max(number, bounds.before_first)


async def _completed(
    source: EventSource, through: str, found: FoundPosition, end: PartitionProperties
) -> FoundPosition:
    """Return a position with both offset and sequence number.

    Raises:
        ConfigurationError: The position is not one of this hub.
    """
    offset, number, since = found.offset, found.sequence_number, found.known_since
    if since is not None:
        require_of_hub(found.where, number, since, source.created_at)
    if offset_format_of(offset) not in {None, source.offset_format}:
        raise ConfigurationError(
            f"{found.where} has offset {offset!r}, one of Event Hubs over AMQP, and this group "
            f"reads over {source.offset_format.value}: give the connection string of AMQP"
        )
    if number is not None:
        require_event(number, end)
    if offset is None and number is not None:
        offset, number = await event_before(source, through, number, end)
    elif offset is not None and number is None:
        number = await _number_at(source, through, offset, end)
    return replace(found, offset=offset, sequence_number=number)


async def _number_at(
    source: EventSource, through: str, offset: str, end: PartitionProperties
) -> int:
    """Return the sequence number at an offset."""
    if end.is_empty or offset == end.last_enqueued_offset:
        return end.last_enqueued_sequence_number
    at = EventPosition.from_offset(offset, is_inclusive=True)
    event = await first_event(source, through, end.partition_id, at)
    is_itself = event.offset == offset  # Else it is gone, and this is the one after it.
    return event.sequence_number if is_itself else event.sequence_number - 1
