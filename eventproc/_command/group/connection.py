"""Connects to a group: its store, and its hub, where single events can be looked up.

To look an event up, a receiver is opened, which interrupts the owner of the partition in the same
consumer group. So the caller chooses the consumer group to read through.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eventproc._command.arguments.address import HubAddress
from eventproc._command.group.view import groups_text, in_order
from eventproc._command.terminal.exits import print_error
from eventproc._core.ownership.liveness import fresh_owners, live_members
from eventproc.errors import ConfigurationError, SourceUnavailableError
from eventproc.models import ConsumerGroup, EventPosition, ReceivedEvent
from eventproc.ports import CheckpointStore, EventSource, QueueSource

NO_POSITIONS = (
    "partition queues have no positions to move or to compare: the broker keeps what is done. To "
    "skip messages, purge their queue (`rabbitmqctl purge_queue NAME`); to handle messages again, "
    "publish them again. `eventproc status` shows how many messages wait"
)

WAIT_MAX: Final = timedelta(seconds=15)
"""How long to wait for an event that is in the hub by its partition properties."""

_BATCH_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A group with its open store and source."""

    group: ConsumerGroup
    store: CheckpointStore
    source: EventSource | None
    """``None`` if the hub is not asked."""

    @property
    def has_queues(self) -> bool:
        """Whether the partitions are queues, whose service keeps the position."""
        return isinstance(self.source, QueueSource)

    def refuse_queues(self) -> None:
        """Refuse a source whose service keeps the position.

        Raises:
            ConfigurationError: It is one; the message has the remedy.
        """
        if self.has_queues:
            raise ConfigurationError(NO_POSITIONS)

    async def check_hub(self) -> None:
        """Check that the hub and its consumer group exist, if the hub is asked.

        Raises:
            ConfigurationError: One of them does not exist, or may not be read.
            SourceRejectedError: There is no such queue.
            SourceUnavailableError: No answer.
        """
        if self.source is None:
            return
        if self.has_queues:  # The check of a processor would create queues that do not exist.
            await self.source.partition_properties((await self.source.partition_ids())[0])
        else:
            await self.source.check_consumer_group(self.group.name)

    async def require_records(self, remedy: str = "") -> None:
        """Refuse a group that has no records in the store, as one with a mistyped name.

        Raises:
            ConfigurationError: It has none; *remedy* is appended.
        """
        if not await self._has_records():
            raise ConfigurationError(f"{await self._absence()}{remedy}")

    async def note_absence(self) -> None:
        """Say on standard error if the group has no records: it may be new, or mistyped."""
        if not await self._has_records():
            unasked = (
                "" if self.source else ". The hub was not asked whether this consumer group exists"
            )
            print_error(f"{await self._absence()}{unasked}")

    async def _has_records(self) -> bool:
        present = await self.store.list_members(self.group)
        return bool(
            present.members
            or present.record_etags
            or (await self.store.list_ownership(self.group)).ownerships
            or await self.store.list_checkpoints(self.group)
        )

    async def other_groups(self, *, of_same_hub: bool = False) -> Sequence[ConsumerGroup]:
        """Return the groups of the same kind in the store; none if it cannot tell."""
        return [
            other
            for other in await self.store.list_groups(self.group if of_same_hub else None)
            if other.is_of_resources is self.group.is_of_resources and other.key != self.group.key
        ]

    async def running(
        self, groups: Sequence[ConsumerGroup], expiration: timedelta
    ) -> frozenset[ConsumerGroup]:
        """Return those of these groups in which a member is alive.

        Raises:
            StoreError: One of them could not be read.
        """
        found = set()
        for group in groups:
            owned = await self.store.list_ownership(group)
            present = await self.store.list_members(group)
            if fresh_owners(owned, expiration) or live_members(present, (), expiration):
                found.add(group)
        return frozenset(found)

    async def _absence(self) -> str:
        group, others = self.group, groups_text(await self.other_groups())
        if group.is_of_resources:
            return (
                f"no process of group {group.name!r} has ever run with this store: check "
                f"--resources and --store{others}"
            )
        return (
            f"no process of consumer group {group.name!r} of event hub {group.eventhub_name!r} at "
            f"{group.fully_qualified_namespace} has ever run with this store: check --eventhub, "
            f"--consumer-group, --namespace and --store{others}"
        )

    async def partition_ids(self, wanted: Sequence[str], known: Sequence[str]) -> list[str]:
        """Return the wanted partitions in order, or all of them if *wanted* is empty.

        Args:
            wanted: Partition ids from the command line.
            known: Partitions with a checkpoint; used if there is no source to ask.

        Raises:
            ConfigurationError: A wanted partition does not exist.
        """
        ids = set(known if self.source is None else await self.source.partition_ids())
        unknown = [partition_id for partition_id in wanted if partition_id not in ids]
        if unknown:
            raise ConfigurationError(
                f"--partition {unknown[0]}: there is no such partition; there are "
                f"{', '.join(in_order(ids)) or 'none'}"
            )
        return in_order(wanted or ids)


@asynccontextmanager
async def connect(
    address: HubAddress, *, creates_store: bool = False, hub_may_be_away: bool = False
) -> AsyncIterator[Connection]:
    """Connect to a group for as long as the block lasts; its hub must have it.

    Args:
        address: The group.
        creates_store: Whether a SQLite file is created if it does not exist.
        hub_may_be_away: Whether to go on if the hub does not answer now.

    Raises:
        ConfigurationError: An option is missing or invalid, or the hub has no such group.
        StoreUnavailableError: The store did not answer.
        SourceError: As for ``Connection.check_hub``.
    """
    group, source = address.group(), address.source()
    store = address.checkpoint_store(must_exist=not creates_store)
    async with store, source or nullcontext():
        connection = Connection(group=group, store=store, source=source)
        with suppress(*([SourceUnavailableError] if hub_may_be_away else [])):
            await connection.check_hub()
        yield connection


async def event_at_or_before(
    source: EventSource, group_name: str, partition_id: str, number: int, *, first: int
) -> ReceivedEvent | None:
    """Return the event of this sequence number, or the last one before it if it is missing.

    Args:
        source: An open source.
        group_name: The consumer group to read through.
        partition_id: The partition.
        number: The sequence number.
        first: The sequence number of the oldest event.

    Returns:
        ``None`` if there is no event from *first* to *number*.
    """
    back = 0
    while True:
        start = max(first, number - back)
        position = EventPosition.from_sequence_number(start, is_inclusive=True)
        found = [
            event
            for event in await _read(source, group_name, partition_id, position, until=number)
            if event.sequence_number <= number
        ]
        if found:
            return found[-1]
        if start == first:
            return None
        back = 2 * back + 1


async def first_event(
    source: EventSource, group_name: str, partition_id: str, position: EventPosition
) -> ReceivedEvent:
    """Return the first event from a position on; the hub must have one."""
    return (await _read(source, group_name, partition_id, position, until=-1))[0]


async def _read(
    source: EventSource, group_name: str, partition_id: str, position: EventPosition, *, until: int
) -> Sequence[ReceivedEvent]:
    """Read at least one event, and all events up to the sequence number *until*."""
    receiver = await source.open_receiver(group_name, partition_id, position)
    found: list[ReceivedEvent] = []
    try:
        while not found or found[-1].sequence_number < until:
            events = await receiver.receive(events_max=_BATCH_MAX, wait_max=WAIT_MAX)
            if not events:
                raise SourceUnavailableError(
                    f"partition {partition_id} did not deliver an event that the hub has"
                )
            found += events
    finally:
        await receiver.close()
    return found
