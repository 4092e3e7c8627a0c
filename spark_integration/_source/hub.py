"""The driver's requests to the hub: for partition ids, ends of partitions, and single events.

Each request opens and closes its own connection, so that a driver that is killed or suspended
between two requests leaves no receiver open on the service.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from eventproc._base.logs import ConditionLogger, get_logger
from eventproc._base.retries import Backoff, waits
from eventproc._base.tasks import together
from eventproc._core.delivery.checkpoints import (
    BEFORE_FIRST_OFFSET,
    BEFORE_FIRST_SEQUENCE_NUMBER,
)
from eventproc.errors import ConfigurationError, SourceUnavailableError, StoreUnavailableError
from eventproc.models import (
    Checkpoint,
    ConsumerGroup,
    EventPosition,
    PartitionProperties,
    ReceivedEvent,
)
from eventproc.ports import EventSource
from spark_integration._option_names import naming_options
from spark_integration._options import SourceOptions
from spark_integration._positions import Positions, refuse_former_hub, refuse_other_protocol
from spark_integration._source.planning import PartitionSpan

BACKOFF: Final = Backoff(maximum=timedelta(seconds=5))
"""Waits between attempts to reach a hub."""


class Outage:
    """Failures in a row of one kind of request."""

    def __init__(
        self, condition: ConditionLogger, patience: timedelta, backoff: Backoff = BACKOFF
    ) -> None:
        """Log *condition*; the last attempt begins within *patience* of the first failure."""
        self._condition = condition
        self._patience_s = patience.total_seconds()
        self._wait_s = waits(backoff)
        self._began_s = 0.0

    @property
    def failure_count(self) -> int:
        """How many attempts have failed in a row."""
        return self._condition.count

    def wait_s(self, error: Exception, **fields: Any) -> float | None:  # noqa: ANN401 - of the log event
        """Note a failure; return the seconds to wait, or ``None`` if there is no time left."""
        now_s = time.monotonic()
        if not self.failure_count:
            self._began_s = now_s
        self._condition.note(error=str(error), **fields)
        wait_s = self._wait_s(self.failure_count)
        return wait_s if now_s + wait_s - self._began_s <= self._patience_s else None

    def wait_out(self, error: Exception) -> None:
        """Note a failure, and block before the next attempt; raise *error* if there is no time."""
        wait_s = self.wait_s(error)
        if wait_s is None:
            raise error
        time.sleep(wait_s)

    def end(self, **fields: object) -> None:
        """Note that a request was answered."""
        self._condition.end(**fields)


LOOKUPS_AT_ONCE: Final = 16
"""Most receivers that are open at a time while positions are looked up."""

T = TypeVar("T")

PartitionEnds = Mapping[str, PartitionProperties]
"""The properties of each partition of a hub, by partition id."""


class Hub:
    """A hub, for synchronous code. Not thread-safe."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._log = get_logger("eventproc.spark", consumer_group=options.consumer_group)
        self.created_at: datetime | None = None
        """When the hub was created, as of the last request for the ends of its partitions."""

    @cached_property
    def name(self) -> str:
        """Namespace and hub, as stored in the query's offset log."""
        return asyncio.run(self._request_once(_name))

    def check(self) -> None:
        """Check, before a query starts, that the consumer group can be read.

        Raises:
            ConfigurationError: it cannot.
            SourceUnavailableError: no answer within ``operationTimeout``.
        """
        group = self._options.consumer_group
        self._request(lambda source: source.check_consumer_group(group))

    def partition_ends(self) -> PartitionEnds:
        """Request the properties of all partitions, and retry until there is an answer.

        Raises:
            SourceUnavailableError: no answer within ``operationTimeout``.
        """
        return self._request(self._partition_ends)

    def partition_ends_now(self) -> PartitionEnds:
        """Request the properties of all partitions once.

        Raises:
            SourceUnavailableError: no answer.
        """
        return asyncio.run(self._request_once(self._partition_ends))

    def find(self, positions: Positions, ends: PartitionEnds) -> dict[str, int]:
        """Return the sequence number of the first event at each position.

        Raises:
            ConfigurationError: a partition does not have the position, or does not exist.
            HubRecreatedError: a checkpoint is of a former hub.
        """
        unknown = set(positions.by_partition) - set(ends)
        if unknown:
            raise ConfigurationError(
                f"positions are given for partition {', '.join(sorted(unknown))}, which the hub "
                f"does not have: it has {', '.join(ends)}"
            )
        return self._request(lambda source: self._find(source, positions, ends))

    def first_events_now(
        self, positions: Mapping[str, EventPosition]
    ) -> Mapping[str, ReceivedEvent]:
        """Request the first event at each partition's position once. Each must exist.

        Raises:
            SourceUnavailableError: no answer, or no event came within ``receiverTimeout``.
        """

        async def look_up(source: EventSource) -> Mapping[str, ReceivedEvent]:
            return await _each(positions, partial(self._first_event, source))

        return asyncio.run(self._request_once(look_up))

    # --- inside the event loop -------------------------------------------------------------------

    def _request(self, request: Callable[[EventSource], Awaitable[T]]) -> T:
        """Repeat a request until there is an answer, or until ``operationTimeout`` has passed."""
        outage = Outage(
            ConditionLogger(self._log, "hub_failed", "hub_recovered"), self._options.patience
        )
        while True:
            try:
                answer = asyncio.run(self._request_once(request))
            except (SourceUnavailableError, StoreUnavailableError) as error:
                outage.wait_out(error)
            else:
                outage.end(failure_count=outage.failure_count)
                return answer

    async def _request_once(self, request: Callable[[EventSource], Awaitable[T]]) -> T:
        with naming_options():
            options = self._options.hub_options(prefetch=1)
            async with self._options.source.make(options) as source:
                return await request(source)

    async def _partition_ends(self, source: EventSource) -> PartitionEnds:
        partition_ids = await source.partition_ids()
        self.created_at = source.created_at
        properties = await source.properties_of(partition_ids)
        return {partition.partition_id: partition for partition in properties}

    async def _find(
        self, source: EventSource, positions: Positions, ends: PartitionEnds
    ) -> dict[str, int]:
        wanted = {partition_id: positions.of(partition_id) for partition_id in ends}
        for checkpoint in await self._checkpoints(source) if positions.is_by_checkpoints else ():
            refuse_other_protocol(checkpoint, source.offset_format)
            refuse_former_hub(checkpoint, self.created_at)
            if checkpoint.partition_id in ends:
                wanted[checkpoint.partition_id] = after(checkpoint)

        async def number_at(partition_id: str, position: EventPosition) -> int:
            return await self._number_at(source, position, ends[partition_id])

        return await _each(wanted, number_at)

    async def _checkpoints(self, source: EventSource) -> Sequence[Checkpoint]:
        """Read the consumer group's checkpoints."""
        assert self._options.store is not None
        group = ConsumerGroup(
            fully_qualified_namespace=source.fully_qualified_namespace,
            eventhub_name=source.eventhub_name,
            name=self._options.consumer_group,
        )
        async with self._options.store.make() as store:
            checkpoints = await store.list_checkpoints(group)
        if checkpoints:
            self._log.info("checkpoints_read", partition_count=len(checkpoints))
        else:
            self._log.warning("checkpoints_not_found", consumer_group=group.name)
        return checkpoints

    async def _number_at(
        self, source: EventSource, position: EventPosition, properties: PartitionProperties
    ) -> int:
        span = span_of(properties)
        if position.sequence_number is not None:
            return _checked(position, properties.partition_id, span)
        if position.is_earliest:
            return span.first
        if position.is_latest or span.first == span.next or _is_after_all(position, properties):
            return span.next
        return (await self._first_event(source, properties.partition_id, position)).sequence_number

    async def _first_event(
        self, source: EventSource, partition_id: str, position: EventPosition
    ) -> ReceivedEvent:
        receiver = await source.open_receiver(self._options.consumer_group, partition_id, position)
        try:
            events = await receiver.receive(events_max=1, wait_max=self._options.silence_max)
        finally:
            await receiver.close()
        if not events:
            raise SourceUnavailableError(
                f"partition {partition_id!r} did not return the event at {position}"
            )
        return events[0]


async def _each(
    positions: Mapping[str, EventPosition], find: Callable[[str, EventPosition], Awaitable[T]]
) -> dict[str, T]:
    """Look up all positions, ``LOOKUPS_AT_ONCE`` at a time."""
    at_once = asyncio.Semaphore(LOOKUPS_AT_ONCE)

    async def look_up(partition_id: str, position: EventPosition) -> T:
        async with at_once:
            return await find(partition_id, position)

    found = await together(*(look_up(*entry) for entry in positions.items()))
    return dict(zip(positions, found, strict=True))


async def _name(source: EventSource) -> str:
    return f"{source.fully_qualified_namespace}/{source.eventhub_name}".lower()


def span_of(properties: PartitionProperties) -> PartitionSpan:
    """Return the range of events that a partition has; it is empty if the partition is."""
    end = properties.last_enqueued_sequence_number + 1
    first = end if properties.is_empty else properties.beginning_sequence_number
    return PartitionSpan(first=first, next=end, last_enqueued_time=properties.last_enqueued_time)


def after(checkpoint: Checkpoint) -> EventPosition:
    """Return the position after a checkpoint.

    The position is a sequence number, as everywhere in the source. Only for checkpoints of an Azure
    SDK without a sequence number it is an offset.
    """
    if checkpoint.sequence_number == BEFORE_FIRST_SEQUENCE_NUMBER:
        return EventPosition.earliest()  # Retention may have removed any number of events.
    if checkpoint.sequence_number is None:
        return EventPosition.from_offset(checkpoint.offset or BEFORE_FIRST_OFFSET)
    return EventPosition.from_sequence_number(checkpoint.sequence_number)


def _checked(position: EventPosition, partition_id: str, span: PartitionSpan) -> int:
    """Return the sequence number of a position. Its event may be deleted, or be the next one."""
    assert position.sequence_number is not None
    number = position.sequence_number + (not position.is_inclusive)
    if number > span.next:
        raise ConfigurationError(
            f"partition {partition_id!r} has no event {number - 1} yet, but a position after it "
            "was given. If that comes from a checkpoint, the hub was deleted and created again"
        )
    return number


def _is_after_all(position: EventPosition, properties: PartitionProperties) -> bool:
    """Whether no event exists yet after a position, so that a reader would wait."""
    if position.enqueued_time is not None:
        newest = properties.last_enqueued_time
        return (
            newest is None
            or newest < position.enqueued_time
            or (newest == position.enqueued_time and not position.is_inclusive)
        )
    return position.offset == properties.last_enqueued_offset and not position.is_inclusive
