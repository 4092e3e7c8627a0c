"""The interfaces of an event source, of its link to one partition, and of a publisher.

A log keeps its events, and can be read from a position: ``EventSource`` and ``PartitionReceiver``.
Queues delete what is done, and keep by themselves how far that is: ``QueueSource`` and
``QueueReceiver``, which have a few members more. What is abstract must be written, in all eight
members of a source and three of a receiver; the rest has defaults that suit most services.
The docstring of ``eventproc.ports`` says what is asked of a source.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from eventproc._base.resource import AsyncResource
from eventproc.errors import ReceiverDisplacedError, SourceError
from eventproc.models import (
    EventPosition,
    LastEnqueued,
    OffsetFormat,
    OutgoingEvent,
    PartitionProperties,
    ReceivedEvent,
    SequenceRange,
)
from eventproc.models._events import joined


@dataclass(frozen=True, slots=True)
class Gathering:
    """How long a batch waits for more events after its first one."""

    least: int = 1
    """So many events complete the batch: then it waits no longer."""

    wait: timedelta = timedelta(0)


AT_ONCE: Final = Gathering()
FOR_COLUMNS: Final = Gathering(4096, timedelta(milliseconds=10))
"""To build a batch of columns costs as much as to handle many events, so a batch waits for more.
The wait is too short for a handler to matter, and long enough for thousands of events where there
is a backlog."""


class PartitionReceiver(ABC):
    """An open link to one partition. Called by one task at a time."""

    _gathered: Sequence[Sequence[ReceivedEvent]] = ()
    """What was received for a batch that is not complete, and until when it waits."""

    _gather_until_s = 0.0

    @abstractmethod
    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        """Return the next events in order: as soon as there is one, or empty after ``wait_max``.

        An event is returned once. A cancelled call loses no event: take events out of a buffer
        only when no ``await`` follows. Let other tasks run in each call, also if events wait.

        Args:
            events_max: The most events to return, 1 or more.
            wait_max: How long to wait for the first event; 0 or more.

        Raises:
            ReceiverDisplacedError: another receiver took the link.
            PositionLostError: events that were received are gone from the partition.
            SourceUnavailableError: the link broke; open another.
            SourceRejectedError: retrying will not help.
        """

    async def receive_batch(
        self, *, events_max: int, wait_max: timedelta, gathering: Gathering
    ) -> Sequence[ReceivedEvent]:
        """Return events as ``receive``, but wait for more of them as *gathering* says.

        A link that breaks meanwhile ends the wait, and the next call raises the error. A cancelled
        call loses no event: the next one continues it.

        Raises:
            SourceError: as ``receive``.
        """
        loop = asyncio.get_running_loop()
        if not self._gathered:
            events = await self.receive(events_max=events_max, wait_max=wait_max)
            if len(events) >= gathering.least or not events:
                return events
            self._gathered = [events]
            self._gather_until_s = loop.time() + gathering.wait.total_seconds()
        least = min(gathering.least, events_max)
        while (count := sum(map(len, self._gathered))) < least:
            left = timedelta(seconds=self._gather_until_s - loop.time())  # Rounded: never tiny.
            if left <= timedelta(0):
                break
            try:
                more = await self.receive(events_max=events_max - count, wait_max=left)
            except ReceiverDisplacedError:
                self._gathered = ()  # The new receiver gets these events, too.
                raise
            except SourceError:
                break
            if more:
                self._gathered = [*self._gathered, more]
        gathered, self._gathered = self._gathered, ()
        return joined(gathered)

    @property
    def is_gathering(self) -> bool:
        """Whether events were received for a batch that is not complete."""
        return bool(self._gathered)

    def read_columns(self) -> None:  # noqa: B027
        """Return an ``EventBatch`` from ``receive`` from now on, if that costs less than events.

        Called once at most, before the first ``receive``, if columns are built of the events.

        Raises:
            MissingExtraError: the extra ``columns`` is not installed.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the link. Closing twice is allowed; never raises.

        ``receive`` raises ``SourceUnavailableError`` from now on.
        """

    @property
    @abstractmethod
    def last_enqueued(self) -> LastEnqueued | None:
        """The newest event of the partition, as last reported by the source, if it was."""

    @property
    def first_sequence_number(self) -> int | None:
        """The lowest number that this link can deliver, if gaps between numbers are normal.

        Then only events below it were lost. ``None``: a gap is a loss if the partition begins
        after it, by ``partition_properties``.
        """
        return None


class EventSource(AsyncResource):
    """A connection to one hub: lists its partitions and opens receivers.

    It belongs to the event loop that opened it.
    """

    @property
    @abstractmethod
    def fully_qualified_namespace(self) -> str:
        """The namespace: the first part of each record's key. Known before the source is open.

        Usually the host name of the service. A group finds its checkpoints under it, so it must
        not change when the service's servers do.
        """

    @property
    @abstractmethod
    def eventhub_name(self) -> str:
        """The hub: the second part of each record's key. Known before the source is open.

        The name of what has the partitions: an event hub, a topic, a prefix of queues.
        """

    @property
    def descriptors_per_partition(self) -> int:
        """How many file descriptors each receiver uses; 0 if receivers share a connection."""
        return 0

    @property
    def offset_format(self) -> OffsetFormat:
        """The format of sequence numbers and offsets; a group uses one format only.

        The default suits every source of a log except Kafka's; queues have ``QUEUE``.
        """
        return OffsetFormat.AMQP

    @property
    def created_at(self) -> datetime | None:
        """When the hub was created, as of the last call of ``partition_ids``.

        A later time than before means that the hub was deleted and created again. ``None``: the
        service does not say. Then only a position after the end of a partition shows it.
        """
        return None

    @abstractmethod
    async def open(self) -> None:
        """Prepare the source for calls. Opening an open source is allowed.

        It need not connect: then the first request does.

        Raises:
            ConfigurationError: it cannot be opened with these arguments.
            SourceUnavailableError: the service did not answer.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close all connections, within seconds. Closing twice is allowed.

        Open receivers end: their calls under way raise ``SourceUnavailableError``.
        """

    @abstractmethod
    async def check_consumer_group(self, name: str) -> None:
        """Check that the consumer group exists and may be read; called before anything is claimed.

        It must not displace a receiver of a group that runs. A service without consumer groups
        checks whether its hub can be read, and ignores the name.

        Raises:
            ConfigurationError: it does not exist, or the credential may not read it.
            SourceUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def partition_ids(self) -> Sequence[str]:
        """Read the current partition ids in order; a hub may grow. Called every few seconds.

        Raises:
            SourceUnavailableError: no answer; try again.
            SourceRejectedError: no such hub, or a role is missing.
        """

    @abstractmethod
    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        """Read where a partition begins and ends. Expensive: not for polling.

        Raises:
            SourceUnavailableError: no answer; try again.
            SourceRejectedError: no such partition.
        """

    async def properties_of(self, partition_ids: Sequence[str]) -> Sequence[PartitionProperties]:
        """Read where several partitions begin and end, in the given order.

        By default one call for each partition; a source may override it with a cheaper way.

        Raises:
            SourceUnavailableError: no answer; try again.
            SourceRejectedError: no such partition.
        """
        return [await self.partition_properties(partition_id) for partition_id in partition_ids]

    @abstractmethod
    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        """Open a link that begins at ``position``.

        A position below the oldest event begins at the oldest. An offset that the partition never
        had, and a number above its newest event, are refused, here or by the first ``receive``: the
        checkpoint is of another hub. Only an inclusive number may be that of the next event. A
        position that has both an offset and a sequence number names one event: use either. A
        service without consumer groups ignores the group: each group keeps its positions in the
        processor's store.

        The link displaces another link of the group to this partition, if the transport can do
        that. The protocol does not rely on it: only the ownership record decides which processor
        is owner.

        Raises:
            SourceUnavailableError: no answer; try again.
            SourceRejectedError: no such partition, or the position cannot be used.
        """


class QueueReceiver(PartitionReceiver):
    """An open link to one partition of a queue, which learns from it what is done."""

    @abstractmethod
    def settle(self, sequence_number: int, completed: Sequence[SequenceRange] = ()) -> None:
        """Tell the service that every event up to this one is done, and those of *completed*.

        Returns at once; never raises. Called after each checkpoint. If the link breaks before the
        service has learned it, these events are received again.
        """

    @abstractmethod
    async def until_settled(self) -> None:
        """Return when the service knows what was settled.

        Raises:
            SourceUnavailableError: it may not know it; events may be received again.
        """

    @abstractmethod
    async def stop(self) -> None:
        """Receive no more; what was received may be settled until ``close``. Never raises."""


class QueueSource(EventSource):
    """An event source whose service itself keeps how far each partition is done, as queues do.

    A link begins at the first event that was not settled, whatever position is asked for, and
    numbers its events from that position on.
    """

    @property
    @abstractmethod
    def unsettled_max(self) -> int:
        """The most received events of a partition that may wait to be settled."""

    @property
    def unsettled_span_max(self) -> timedelta | None:
        """For how long an event may stay unsettled, by the service's default; ``None``: forever."""
        return None

    def was_delivered(self, event: ReceivedEvent) -> bool:  # noqa: ARG002
        """Whether a processor may have received an event before; if not, it has killed none.

        Not ``True`` for a service that counts deliveries and sends events again before new ones.
        """
        return True

    def set_expiration(self, expiration: timedelta) -> None:
        """Take the group's ``ownership_expiration``; called once, before ``open``.

        A service with consumers of its own should notice a suspended one within that time.
        """

    @abstractmethod
    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> QueueReceiver:
        """Open a link at the first event that was not settled.

        Raises:
            SourceUnavailableError: no answer; try again.
            SourceRejectedError: no such partition.
        """


class EventPublisher(AsyncResource):
    """Publishes events to one hub, at least once. Belongs to one event loop.

    After an error, close it and use a new one.
    """

    @property
    def takes_both(self) -> bool:
        """Whether an event may name its partition and have a key as well."""
        return True

    @abstractmethod
    async def publish(self, events: Sequence[OutgoingEvent], *, patience: timedelta) -> None:
        """Publish events, and return when the service has acknowledged every one of them.

        Events of one partition are stored in their order, and so are those of one partition key. A
        request without answer, or that the service throttles, is repeated, which may store its
        events twice.

        Args:
            events: Any number of them.
            patience: How long to repeat a request that is not acknowledged.

        Raises:
            EventRefusedError: an event cannot be published as it is. Others may be stored.
            SourceRejectedError: the service refuses for good. Some events may be stored.
            SourceUnavailableError: no acknowledgement within *patience*. Some may be stored.
        """
