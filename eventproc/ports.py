"""The interfaces that a processor uses: checkpoint store, event source, dead-letter sink.

``eventproc.testing.check_checkpoint_store`` tests a store against every rule of
``CheckpointStore``. Adapters translate the exceptions of client libraries into the errors of
``eventproc.errors``.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from eventproc.concurrency.resource import AsyncResource
from eventproc.errors import StoreError
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    DeadLetter,
    EventPosition,
    GroupRecord,
    LastEnqueued,
    Member,
    MemberResult,
    MembershipSnapshot,
    OffsetFormat,
    OwnershipClaim,
    OwnershipSnapshot,
    PartitionProperties,
    ReceivedEvent,
    RecordResult,
    SequenceRange,
    WriteOutcome,
)

P = ParamSpec("P")
T = TypeVar("T")


class CheckpointStore(AsyncResource):
    """Where a consumer group keeps ownership records, member records and checkpoints.

    The whole protocol rests on one rule: a record is written only if it still has the ETag that the
    caller read. Methods may be called concurrently. A store belongs to the event loop that opened
    it.

    A method that reads raises ``StoreRejectedError`` if the store refuses for good (for example, a
    role is missing), and ``StoreCorruptError`` if a record is damaged. A method that writes raises
    neither of them: it returns the outcome ``UNKNOWN``, and ``error`` of the result says why.

    Every listing of ownership or member records has ``as_of``, the store's own time, and the same
    clock dates the records: nothing else decides whether a record has expired.

    If a store raises anything else, the processor treats it as no answer, and logs it with its
    traceback (``store_call_failed``).
    """

    @abstractmethod
    async def open(self) -> None:
        """Connect, and check that the store can be used.

        Raises:
            ConfigurationError: the store cannot work as it is set up: a container does not exist,
                a credential is refused.
            StoreUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close all connections. Closing twice is allowed."""

    @abstractmethod
    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """Read every ownership record of the group, whatever its age.

        A record that cannot be parsed is left out and logged; it does not fail the listing.

        Raises:
            StoreUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Write each claim on its own, and return the outcome of each, in order.

        Never raises for a single claim. If the store repeats a write that got no answer, it
        recognises its own earlier write, and the outcome is ``WON``.
        """

    @abstractmethod
    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        """Read every member record of the group, whatever its age.

        Raises:
            StoreUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        """Write a member record if it still has ``member.etag`` (``None``: if there is none).

        Writing the same content again renews its time. Never raises for a lost or unknown outcome.
        """

    @abstractmethod
    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        """Delete a member record if it still has ``member.etag``; ``WON`` too if there is none."""

    @abstractmethod
    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        """Read every checkpoint of the group that names a position; states may be left out.

        Raises:
            StoreUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        """Read one checkpoint with its state.

        Returns ``None`` if there is no record. A record without a usable position is returned with
        neither offset nor sequence number, so that it can be replaced.

        Raises:
            StoreUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Write position and state in one step, if ``update.replaces`` is still what is stored.

        Writing the stored content again also changes the ETag; that is how a new owner fences the
        former one. Never raises for a lost or unknown outcome. If the store repeats a write that
        got no answer, it recognises its own earlier write by ``update.writer``, and the outcome is
        ``WON``.
        """

    @abstractmethod
    async def read_record(self, group: ConsumerGroup, name: str) -> GroupRecord | None:
        """Read a record of the whole group, or ``None`` if there is none of this name.

        Raises:
            StoreUnavailableError: no answer; try again.
            StoreCorruptError: it is damaged.
        """

    @abstractmethod
    async def write_record(self, group: ConsumerGroup, record: GroupRecord) -> RecordResult:
        """Write a group record if it still has ``record.etag`` (``None``: if there is none).

        Never raises for a lost or unknown outcome. If the store repeats a write that got no answer,
        it recognises its own earlier write, and the outcome is ``WON``; a write of another
        processor with the same content is not its own.
        """


class ForwardingStore(CheckpointStore):
    """A store that calls another one: base of stores that change some calls of another.

    A subclass overrides a method to change one call, and ``forward`` to change all of them. If
    ``forward`` raises a ``StoreError`` for a write, the outcome of the write is ``UNKNOWN``.
    """

    def __init__(self, store: CheckpointStore) -> None:
        """Forward to *store*."""
        self.store = store

    async def forward(
        self,
        method: Callable[Concatenate[Any, P], Awaitable[T]],
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call the other store's method of this name. ``open`` and ``close`` do not come here."""
        answer: T = await getattr(self.store, method.__name__)(*args, **options)
        return answer

    async def open(self) -> None:
        """Open the other store."""
        await self.store.open()

    async def close(self) -> None:
        """Close the other store."""
        await self.store.close()

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """Forward the call."""
        return await self.forward(CheckpointStore.list_ownership, group)

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Forward the call; if that fails, the outcome of each claim is unknown."""
        try:
            return await self.forward(CheckpointStore.claim_ownership, group, claims)
        except StoreError as error:
            return [
                ClaimResult(claim=claim, outcome=WriteOutcome.UNKNOWN, error=error)
                for claim in claims
            ]

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        """Forward the call."""
        return await self.forward(CheckpointStore.list_members, group)

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        """Forward the call; if that fails, the outcome is unknown."""
        try:
            return await self.forward(CheckpointStore.announce_member, group, member)
        except StoreError as error:
            return MemberResult(outcome=WriteOutcome.UNKNOWN, error=error)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        """Forward the call; if that fails, the outcome is unknown."""
        try:
            return await self.forward(CheckpointStore.withdraw_member, group, member)
        except StoreError:
            return WriteOutcome.UNKNOWN

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        """Forward the call."""
        return await self.forward(CheckpointStore.list_checkpoints, group)

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        """Forward the call."""
        return await self.forward(CheckpointStore.read_checkpoint, group, partition_id)

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Forward the call; if that fails, the outcome is unknown."""
        try:
            return await self.forward(CheckpointStore.update_checkpoint, group, update)
        except StoreError as error:
            return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=error)

    async def read_record(self, group: ConsumerGroup, name: str) -> GroupRecord | None:
        """Forward the call."""
        return await self.forward(CheckpointStore.read_record, group, name)

    async def write_record(self, group: ConsumerGroup, record: GroupRecord) -> RecordResult:
        """Forward the call; if that fails, the outcome is unknown."""
        try:
            return await self.forward(CheckpointStore.write_record, group, record)
        except StoreError as error:
            return RecordResult(outcome=WriteOutcome.UNKNOWN, error=error)


class DeadLetterSink(ABC):
    """Where events that were given up are stored. Belongs to the processor's event loop.

    One for each processor; its partitions may store dead letters concurrently.
    """

    async def open(self) -> None:  # noqa: B027 - a sink may need no connection
        """Connect, and check as far as possible that dead letters can be stored.

        Raises:
            ConfigurationError: the sink cannot work as it is set up.
            DeadLetterError: no answer; try again.
        """

    async def close(self) -> None:  # noqa: B027
        """Close all connections. Closing twice is allowed."""

    @abstractmethod
    async def store(self, letter: DeadLetter) -> None:
        """Return when the dead letter is stored durably. The same one may be stored again later.

        Raises:
            DeadLetterError: it is not known to be stored. The processor tries again until it is:
                the position does not move past an event whose dead letter is not stored.
        """


class PartitionReceiver(ABC):
    """An open link to one partition. Called by one task at a time."""

    @abstractmethod
    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        """Return the next events in order: as soon as there is one, or empty after ``wait_max``.

        An event is returned once. A cancelled call loses no event.

        Raises:
            ReceiverDisplacedError: another receiver took the link.
            SourceUnavailableError: the link broke; open another.
            SourceRejectedError: retrying will not help.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the link. Closing twice is allowed; never raises."""

    async def stop(self) -> None:
        """Receive no more; events that were received may be settled until ``close``. Never raises.

        Called only for a source with ``unsettled_max``.
        """
        await self.close()

    def settle(  # noqa: B027 - most sources settle nothing
        self, sequence_number: int, completed: Sequence[SequenceRange] = ()
    ) -> None:
        """Tell the service that every event up to this one is done, and those of *completed*.

        Returns at once; never raises. Called after each checkpoint, for a source with
        ``unsettled_max``. If the link breaks before the service has learned it, these events are
        received again.
        """

    async def until_settled(self) -> None:  # noqa: B027
        """Return when the service knows what was settled.

        Raises:
            SourceUnavailableError: it may not know it; events may be received again.
        """

    @property
    @abstractmethod
    def last_enqueued(self) -> LastEnqueued | None:
        """The newest event of the partition, as last reported by the source, if it was."""

    @property
    def first_sequence_number(self) -> int | None:
        """The lowest number that this link can deliver, if gaps between numbers are normal.

        Then only events below it were lost. ``None``: every gap is a loss.
        """
        return None


class EventSource(AsyncResource):
    """A connection to one hub: lists its partitions and opens receivers.

    It belongs to the event loop that opened it.
    """

    @property
    @abstractmethod
    def fully_qualified_namespace(self) -> str:
        """The namespace: the first part of each record's key. Known before the source is open."""

    @property
    @abstractmethod
    def eventhub_name(self) -> str:
        """The hub: the second part of each record's key. Known before the source is open."""

    @property
    def descriptors_per_partition(self) -> int:
        """How many file descriptors each receiver uses; 0 if receivers share a connection."""
        return 0

    @property
    def offset_format(self) -> OffsetFormat:
        """The format of sequence numbers and offsets; a group uses one format only."""
        return OffsetFormat.AMQP

    @property
    def unsettled_max(self) -> int | None:
        """How many events of a partition are received at most that are not settled yet.

        Not ``None``: the service itself keeps how far a partition is done, as a queue does. Then a
        link begins at the first event that was not settled, whatever position is asked for, and
        numbers its events from that position on.
        """
        return None

    def suit(self, expiration: timedelta) -> None:
        """Learn the group's ``ownership_expiration``; called once, before ``open``.

        A service with consumers of its own should notice a frozen one within that time.
        """

    @abstractmethod
    async def open(self) -> None:
        """Prepare the source for calls. Opening an open source is allowed."""

    @abstractmethod
    async def close(self) -> None:
        """Close all connections. Closing twice is allowed."""

    @abstractmethod
    async def check_consumer_group(self, name: str) -> None:
        """Check that the consumer group exists and may be read; called before anything is claimed.

        Raises:
            ConfigurationError: it does not exist, or the credential may not read it.
            SourceUnavailableError: no answer; try again.
        """

    @abstractmethod
    async def partition_ids(self) -> Sequence[str]:
        """Read the current partition ids; a hub may grow.

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

        It displaces another link of the group to this partition, if the transport can do that. The
        protocol does not rely on it: only the ownership record decides which processor is owner.

        Raises:
            SourceUnavailableError: no answer; try again.
            SourceRejectedError: no such partition, or the position cannot be used.
        """
