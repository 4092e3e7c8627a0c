"""What the processor asks of the world: a checkpoint store and an event source.

What the methods mean is an executable suite: ``eventproc.testing.check_checkpoint_store`` runs
every clause below against any store. Exceptions of a third party never cross a port: an adapter
raises the errors of ``eventproc.errors`` from them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import Self

from eventproc.deadletter import DeadLetter
from eventproc.membership import Member, MemberResult, MembershipSnapshot
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    EventPosition,
    LastEnqueued,
    Numbering,
    OwnershipClaim,
    OwnershipSnapshot,
    PartitionProperties,
    ReceivedEvent,
    WriteOutcome,
)


class CheckpointStore(ABC):
    """Where a consumer group keeps ownership, checkpoints and presence.

    One rule carries the whole protocol: a write is made only if the record still has the etag
    that the caller read. Methods may be called concurrently. A store belongs to the event loop
    that opened it.
    """

    async def __aenter__(self) -> Self:
        """Open the store."""
        await self.open()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the store."""
        await self.close()

    @abstractmethod
    async def open(self) -> None:
        """Connect, and check that the store can be used.

        Raises:
            ConfigurationError: the store can never work as it is set up: a container that does
                not exist, a credential that is refused.
            StoreUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let go of all connections. Closing twice is fine."""

    @abstractmethod
    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """Read every ownership record of the group, whatever its age.

        One record that cannot be parsed is left out (and logged); it never fails the listing.

        Raises:
            StoreUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Carry out each claim on its own and report each: won, lost or unknown; in order.

        Never raises for a single claim. A claim that was repeated inside the store after an
        unanswered attempt recognises its own earlier write and is won.
        """

    @abstractmethod
    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        """Read every presence record of the group, whatever its age.

        Raises:
            StoreUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        """Write a presence record if it still has ``member.etag`` (``None``: if there is none).

        Writing the same again renews its time. Never raises for a lost or unknown outcome.
        """

    @abstractmethod
    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        """Delete a presence record if it still has ``member.etag``. One already gone is won."""

    @abstractmethod
    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        """Read every checkpoint of the group that names a position; states may be left out.

        Raises:
            StoreUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        """Read one checkpoint with its state.

        Returns ``None`` where there is no record. A record that names no usable position comes
        back with neither offset nor sequence number, so that it can still be replaced.

        Raises:
            StoreUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Write position and state in one step, if nobody wrote since ``update.replaces``.

        Repeating the content that is stored is a write like any other: it changes the etag,
        which is how a new owner shuts out the former one. Never raises for a lost or unknown
        outcome. A write that was repeated inside the store after an unanswered attempt
        recognises its own earlier write by ``update.writer`` and is won.
        """


class DeadLetterSink(ABC):
    """Where events go that were given up. Belongs to the processor's event loop.

    One for each processor; its partitions may store letters concurrently.
    """

    @abstractmethod
    async def open(self) -> None:
        """Connect, and check as far as possible that letters can be stored.

        Raises:
            ConfigurationError: it can never work as it is set up.
            DeadLetterError: no answer; try again.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let go of all connections. Closing twice is fine."""

    @abstractmethod
    async def store(self, letter: DeadLetter) -> None:
        """Return when the letter is stored for good. One that is stored already may come again.

        Raises:
            DeadLetterError: it is not known to be stored. It will be tried again until it is: the
                position does not move past an event whose letter is not stored.
        """


class PartitionReceiver(ABC):
    """An open link to one partition. One caller at a time."""

    @abstractmethod
    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        """Return the next events in order: as soon as there is one, or empty after ``wait_max``.

        What was returned is never returned again. A cancelled call loses no event.

        Raises:
            ReceiverDisplacedError: another receiver took the link.
            SourceUnavailableError: the link broke; open another.
            SourceRejectedError: retrying will not help.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the link. Closing twice is fine, and it never raises."""

    @property
    @abstractmethod
    def last_enqueued(self) -> LastEnqueued | None:
        """The newest event of the partition, as last told by the source; ``None`` if untold."""

    @property
    def first_sequence_number(self) -> int | None:
        """The lowest number that this link can deliver, where numbers have gaps that mean nothing.

        Then only what lies below it was lost. ``None`` where every gap is a loss.
        """
        return None


class EventSource(ABC):
    """A partitioned stream of events. Belongs to the event loop that opened it."""

    async def __aenter__(self) -> Self:
        """Open the source."""
        await self.open()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the source."""
        await self.close()

    @property
    @abstractmethod
    def fully_qualified_namespace(self) -> str:
        """The first part of every record's key; known before the source is open."""

    @property
    @abstractmethod
    def eventhub_name(self) -> str:
        """The second part of every record's key; known before the source is open."""

    @property
    def numbering(self) -> Numbering:
        """Whose sequence numbers and offsets these are: a group keeps those of one kind."""
        return Numbering.AMQP

    @abstractmethod
    async def open(self) -> None:
        """Get ready to be asked. Opening an open source is fine."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of all connections. Closing twice is fine."""

    @abstractmethod
    async def check_consumer_group(self, name: str) -> None:
        """Make sure that the consumer group exists and may be read, before anything is claimed.

        Raises:
            ConfigurationError: it does not exist, or the credential may not read it.
            SourceUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def partition_ids(self) -> Sequence[str]:
        """Read the partition ids anew; a hub may grow.

        Raises:
            SourceUnavailableError: no answer; try again.
            SourceRejectedError: no such hub, or no right to ask.
        """

    @abstractmethod
    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        """Read where a partition begins and ends. Costly: not for polling.

        Raises:
            SourceUnavailableError: no answer; try again.
            SourceRejectedError: no such partition.
        """

    async def properties_of(self, partition_ids: Sequence[str]) -> Sequence[PartitionProperties]:
        """Read where several partitions begin and end, in the order in which they are named.

        Here one question follows the other; a source that can ask cheaper does.

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

        It displaces any other of the group where the transport can do that. No protection rests
        on it: only the ownership record tells who may go on.

        Raises:
            SourceUnavailableError: no answer; try again.
            SourceRejectedError: no such partition, or the position cannot be used.
        """
