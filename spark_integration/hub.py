"""What the driver asks of the hub: which partitions it has, and where each begins and ends.

Nothing is kept open between two questions, so a driver that is stopped, killed or frozen leaves
nothing behind on the service.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeVar

from eventproc.config import Backoff
from eventproc.core.policy import backoff_s
from eventproc.core.progress import BEFORE_FIRST_OFFSET
from eventproc.errors import ConfigurationError, SourceUnavailableError, StoreUnavailableError
from eventproc.logs import get_logger
from eventproc.models import Checkpoint, ConsumerGroup, EventPosition, PartitionProperties
from eventproc.ports import EventSource
from spark_integration.options import SourceOptions
from spark_integration.planning import PartitionSpan
from spark_integration.positions import Positions, refuse_kafka

LOOKUPS_AT_ONCE: Final = 16
"""Receivers open at a time while positions are looked up."""

BACKOFF: Final = Backoff(most=timedelta(seconds=5))
"""Between attempts to reach a hub."""

T = TypeVar("T")

Hold = Mapping[str, PartitionProperties]
"""What a hub says of each of its partitions."""


class Hub:
    """A hub, asked from synchronous code. Use it in one thread."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._log = get_logger("eventproc.spark", consumer_group=options.consumer_group)
        self._name: str | None = None

    @property
    def name(self) -> str:
        """Namespace and hub: what offsets belong to."""
        if self._name is None:
            self._name = asyncio.run(self._ask_once(self._named))
        return self._name

    def check(self) -> None:
        """Make sure, before a query begins, that the consumer group can be read.

        Raises:
            ConfigurationError: it cannot.
            SourceUnavailableError: no answer for as long as ``operationTimeout``.
        """
        group = self._options.consumer_group
        self._ask(lambda source: source.check_consumer_group(group))

    def hold(self) -> Hold:
        """What each partition has now; asked until there is an answer.

        Raises:
            SourceUnavailableError: none came for as long as ``operationTimeout``.
        """
        return self._ask(_hold)

    def hold_now(self) -> Hold:
        """The same, asked once.

        Raises:
            SourceUnavailableError: no answer.
        """
        return asyncio.run(self._ask_once(_hold))

    def find(self, positions: Positions, hold: Hold) -> dict[str, int]:
        """The sequence number from which a reader would read that begins at the positions.

        Raises:
            ConfigurationError: a partition has no such position, or there is no such partition.
        """
        unknown = set(positions.by_partition) - set(hold)
        if unknown:
            raise ConfigurationError(
                f"positions are given for partition {', '.join(sorted(unknown))}, which the hub "
                f"does not have: it has {', '.join(hold)}"
            )
        return self._ask(lambda source: self._find(source, positions, hold))

    # --- inside the event loop -------------------------------------------------------------------

    def _ask(self, question: Callable[[EventSource], Awaitable[T]]) -> T:
        """Ask until there is an answer, or until nobody can be expected to wait any longer."""
        give_up_at = time.monotonic() + self._options.patience.total_seconds()
        attempt = 0
        while True:
            try:
                return asyncio.run(self._ask_once(question))
            except (SourceUnavailableError, StoreUnavailableError) as error:
                attempt += 1
                wait_s = backoff_s(attempt, first=BACKOFF.first, most=BACKOFF.most)
                if time.monotonic() + wait_s > give_up_at:
                    raise
                if attempt == 1:
                    self._log.warning("hub_unavailable", error=str(error))
                time.sleep(wait_s)

    async def _ask_once(self, question: Callable[[EventSource], Awaitable[T]]) -> T:
        options = self._options.hub_options(prefetch=1)
        async with self._options.source.make(options) as source:
            return await question(source)

    async def _named(self, source: EventSource) -> str:
        return f"{source.fully_qualified_namespace}/{source.eventhub_name}".lower()

    async def _find(self, source: EventSource, positions: Positions, hold: Hold) -> dict[str, int]:
        wanted = {partition_id: positions.of(partition_id) for partition_id in hold}
        found: dict[str, int] = {}
        for checkpoint in await self._checkpoints(source) if positions.is_by_checkpoints else ():
            if checkpoint.partition_id in hold:
                wanted[checkpoint.partition_id] = after(checkpoint)
        at_once = asyncio.Semaphore(LOOKUPS_AT_ONCE)

        async def find_one(partition_id: str) -> None:
            async with at_once:
                found[partition_id] = await self._number_at(
                    source, wanted[partition_id], hold[partition_id]
                )

        await asyncio.gather(*map(find_one, wanted))
        return found

    async def _checkpoints(self, source: EventSource) -> Sequence[Checkpoint]:
        """What the consumer group has in its store."""
        assert self._options.store is not None
        group = ConsumerGroup(
            fully_qualified_namespace=source.fully_qualified_namespace,
            eventhub_name=source.eventhub_name,
            name=self._options.consumer_group,
        )
        async with self._options.store.make() as store:
            checkpoints = await store.list_checkpoints(group)
        self._log.info("checkpoints_read", partition_count=len(checkpoints))
        return checkpoints

    async def _number_at(
        self, source: EventSource, position: EventPosition, properties: PartitionProperties
    ) -> int:
        span = span_of(properties)
        if position.sequence_number is not None:
            return _checked(position, properties.partition_id, span)
        if position.is_earliest:
            return span.first
        if position.is_latest or span.first == span.next or _is_behind_all(position, properties):
            return span.next
        receiver = await source.open_receiver(
            self._options.consumer_group, properties.partition_id, position
        )
        try:
            events = await receiver.receive(events_max=1, wait_max=self._options.silence_max)
        finally:
            await receiver.close()
        if not events:
            raise SourceUnavailableError(
                f"partition {properties.partition_id!r} did not tell which event is at {position}"
            )
        return events[0].sequence_number


async def _hold(source: EventSource) -> Hold:
    partition_ids = await source.partition_ids()
    properties = await source.properties_of(partition_ids)
    return {partition.partition_id: partition for partition in properties}


def span_of(properties: PartitionProperties) -> PartitionSpan:
    """The events that a partition has; an empty one begins where it ends, whatever it says."""
    end = properties.last_enqueued_sequence_number + 1
    first = end if properties.is_empty else properties.beginning_sequence_number
    return PartitionSpan(first=first, next=end)


def after(checkpoint: Checkpoint) -> EventPosition:
    """Where reading goes on behind a checkpoint.

    By number, which is what everything here counts in; some checkpoints of other SDKs have an
    offset alone.

    Raises:
        ConfigurationError: it was written by a processor that reads over Kafka.
    """
    refuse_kafka(checkpoint)
    if checkpoint.sequence_number is None:
        return EventPosition.from_offset(checkpoint.offset or BEFORE_FIRST_OFFSET)
    return EventPosition.from_sequence_number(checkpoint.sequence_number)


def _checked(position: EventPosition, partition_id: str, span: PartitionSpan) -> int:
    """The number of the first event, which need not be there any more, nor yet."""
    assert position.sequence_number is not None
    number = position.sequence_number + (not position.is_inclusive)
    if number > span.next:
        raise ConfigurationError(
            f"partition {partition_id!r} has no event {number - 1} yet, and a position behind it "
            "was given. If that comes from a checkpoint, the hub was deleted and created anew"
        )
    return number


def _is_behind_all(position: EventPosition, properties: PartitionProperties) -> bool:
    """Whether a reader there would wait for an event that does not exist yet."""
    if position.enqueued_time is not None:
        newest = properties.last_enqueued_time
        return (
            newest is None
            or newest < position.enqueued_time
            or (newest == position.enqueued_time and not position.is_inclusive)
        )
    return position.offset == properties.last_enqueued_offset and not position.is_inclusive
