"""The links to one partition, one after another: of a log, or of a queue."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from eventproc._core.delivery.progress import PartitionProgress
from eventproc._delivery.config import CheckpointPolicy
from eventproc._delivery.scope import PartitionIdentity
from eventproc.errors import SourceUnavailableError
from eventproc.models import Checkpoint, EventPosition, LastEnqueued, ReceivedEvent, SequenceRange
from eventproc.ports import EventSource, PartitionReceiver, QueueReceiver, QueueSource
from eventproc.ports._event_source import Gathering


class Links:
    """The links to a partition of a log: the checkpoint alone says where each of them begins."""

    receiver: PartitionReceiver | None = None
    """The open link."""

    can_be_refused = True
    """Whether a position above the newest event is refused."""

    def __init__(self, source: EventSource, identity: PartitionIdentity) -> None:
        """Open no link before ``open``."""
        self.source = source
        self._partition = (identity.group.name, identity.partition_id)

    def gathering(self, wanted: Gathering) -> Gathering:
        """Return for how many events a batch may wait."""
        return wanted

    def checkpoint_policy(self, wanted: CheckpointPolicy) -> CheckpointPolicy:
        """Return when a checkpoint is due."""
        return wanted

    def restore(self, checkpoint: Checkpoint, progress: PartitionProgress) -> int | None:
        """Restore the progress; return the highest number that events have had above it."""
        progress.restore(checkpoint)
        return None

    async def open(
        self,
        position: EventPosition,
        newest_received: int | None,  # noqa: ARG002 - a log has its own numbers
    ) -> PartitionReceiver:
        """Open a link at *position*.

        Raises:
            SourceError: as ``EventSource.open_receiver``.
        """
        self.receiver = await self.source.open_receiver(*self._partition, position)
        return self.receiver

    def delivered_through(
        self, events: Sequence[ReceivedEvent], newest: LastEnqueued | None
    ) -> float:
        """Return the highest number that a process may have received before.

        Args:
            events: The first events that were received. Events that arrive together may have been
                delivered together before.
            newest: The newest event of the partition, if it is known.
        """
        return inf if newest is None else max(newest.sequence_number, events[-1].sequence_number)

    def settle(self, sequence_number: int, completed: Sequence[SequenceRange]) -> None:
        """Tell the service what the checkpoint has as done: up to this event, and some above it."""

    async def until_settled(self) -> None:
        """Return when the service knows what was settled.

        Raises:
            SourceUnavailableError: it may not know it.
        """

    async def stop(self) -> None:
        """Receive no more; what was received may be settled until ``close``."""
        await self.close()

    async def close(self) -> None:
        """Close the link, if one is open."""
        receiver, self.receiver = self.receiver, None
        if receiver is not None:
            await receiver.close()


class QueueLinks(Links):
    """The links to a partition of a queue: its service keeps where each of them begins."""

    receiver: QueueReceiver | None = None
    can_be_refused = False

    def __init__(self, queue: QueueSource, identity: PartitionIdentity) -> None:
        """Open no link before ``open``."""
        super().__init__(queue, identity)
        self._queue = queue

    def gathering(self, wanted: Gathering) -> Gathering:
        """Wait for no more than it delivers before some of them are settled."""
        return replace(wanted, least=min(wanted.least, self._queue.unsettled_max))

    def checkpoint_policy(self, wanted: CheckpointPolicy) -> CheckpointPolicy:
        """Store before the service waits for what is settled."""
        return wanted.within(self._queue.unsettled_max)

    def restore(self, checkpoint: Checkpoint, progress: PartitionProgress) -> int | None:
        """Leave completed events out: it does not deliver them again, and numbers on above them."""
        progress.restore(replace(checkpoint, completed=()))
        return checkpoint.completed[-1].last if checkpoint.completed else None

    async def open(self, position: EventPosition, newest_received: int | None) -> PartitionReceiver:
        """Open a link; it numbers its events from the newest one that was received.

        Those that are delivered again have new numbers, too: events with the former numbers may
        still be under way.
        """
        if newest_received is not None:
            position = EventPosition.from_sequence_number(newest_received)
        self.receiver = await self._queue.open_receiver(*self._partition, position)
        return self.receiver

    def delivered_through(
        self,
        events: Sequence[ReceivedEvent],
        newest: LastEnqueued | None,  # noqa: ARG002 - the limit is closer
    ) -> float:
        """Go by what the service delivers at most, and by what it counts."""
        before_first = events[0].sequence_number - 1
        new = (e.sequence_number for e in events if not self._queue.was_delivered(e))
        return min(before_first + self._queue.unsettled_max, next(new, inf) - 1)

    def settle(self, sequence_number: int, completed: Sequence[SequenceRange]) -> None:
        """Tell the open link, if there is one."""
        if self.receiver is not None:
            self.receiver.settle(sequence_number, completed)

    async def until_settled(self) -> None:
        """Wait for the open link."""
        if self.receiver is None:
            raise SourceUnavailableError("there is no link")
        await self.receiver.until_settled()

    async def stop(self) -> None:
        """Keep the link for what is settled until ``close``."""
        if self.receiver is not None:
            await self.receiver.stop()
