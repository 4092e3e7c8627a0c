"""The interface of a checkpoint store, of its transactions, and of stores around another one.

``eventproc.testing.check_checkpoint_store`` tests a store against every rule of
``CheckpointStore``.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from eventproc._base.resource import AsyncResource
from eventproc.errors import StoreError
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    GroupRecord,
    Member,
    MemberResult,
    MembershipSnapshot,
    OwnershipClaim,
    OwnershipSnapshot,
    RecordResult,
    WriteOutcome,
)


class Transaction(ABC):
    """A transaction in which a handler writes, and the checkpoint with it.

    It is rolled back unless ``commit`` succeeds.
    """

    db: Any
    """The connection, for the handler's statements. Its kind depends on the store."""

    @property
    @abstractmethod
    def is_broken(self) -> bool:
        """Whether the connection is lost, so that nothing of the transaction can be committed."""

    @abstractmethod
    async def commit(self, group: ConsumerGroup, update: CheckpointUpdate) -> CheckpointResult:
        """Write the checkpoint and commit, if ``update.replaces`` is still what is stored.

        ``LOST``: another processor wrote the checkpoint, and everything is rolled back.
        ``UNKNOWN``: no answer; all of it is committed, or nothing.

        Raises:
            Exception: an error of the database about the handler's own writes, found at the commit;
                everything is rolled back.
        """


class Transactions(AsyncResource):
    """Begins transactions for the handlers of one processor, on the event loop that opened it.

    That is the handlers' loop; the store itself belongs to another one.
    """

    is_exclusive: bool = False
    """Whether nothing else can write to the store while a transaction is open."""

    @abstractmethod
    def begin(
        self, *, is_blocking: bool, idle_max: timedelta
    ) -> AbstractAsyncContextManager[Transaction]:
        """Return a block in which a transaction is open.

        Args:
            is_blocking: Whether ``db`` is used by ordinary functions, in another thread.
            idle_max: The server ends a transaction that has no statement for so long, so that a
                suspended process does not keep its locks.

        Raises:
            StoreError: the store did not answer, or refused.
        """


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

    @property
    def tells_changes(self) -> bool:
        """Whether ``watch`` tells of changes, so that others notice what one writes at once."""
        return False

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
        """Read every member record of the group, whatever its age, and the ETags of group records.

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

    async def list_groups(
        self,
        hub_of: ConsumerGroup | None = None,  # noqa: ARG002 - for stores that can tell
    ) -> Sequence[ConsumerGroup]:
        """Read which groups have records, for an operator who may have mistyped a name.

        It may read every record, so no processor calls it. A store that cannot tell returns none,
        as this method does.

        Args:
            hub_of: If given, only groups of the same hub as this one are returned.

        Raises:
            StoreUnavailableError: no answer; try again.
        """
        return ()

    def transactions(self) -> Transactions | None:
        """Return what begins transactions for handlers; ``None`` if the store has none.

        It is opened and closed apart from the store, on another event loop.
        """
        return None

    async def watch(
        self,
        group: ConsumerGroup,
        owner_id: str,
        changed: Callable[[], object],
    ) -> None:
        """Call *changed* soon after another processor changed what concerns this one.

        That is: a member came, left or changed its status; a partition was released, or handed to
        or taken from this owner; a group record was written. Renewals are no changes. A store that
        can tell runs until it is cancelled, and connects again by itself; one that cannot returns
        at once, as this method does. Processors poll in both cases, so a missed change costs time
        only.
        """


class ForwardingStore(CheckpointStore):
    """A store that calls another one: base of stores that change some calls of another.

    A subclass overrides a method to change one call, and ``forward`` to change all of them. If
    ``forward`` raises a ``StoreError`` for a write, the outcome of the write is ``UNKNOWN``.
    """

    def __init__(self, store: CheckpointStore) -> None:
        """Forward to *store*."""
        self.store = store

    def __repr__(self) -> str:
        return f"{type(self).__name__}({vars(self).get('store')!r})"

    async def forward(
        self,
        method: Callable[Concatenate[Any, P], Awaitable[T]],
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call the other store's method of this name; not for opening, closing and watching."""
        answer: T = await getattr(self.store, method.__name__)(*args, **options)
        return answer

    def reserve(self, user: object) -> None:
        """Reserve the other store as well, unless it is made later, by ``open``."""
        super().reserve(user)
        if "store" in vars(self):
            self.store.reserve(user)

    def give_back(self) -> None:
        """Let others use it, and the other store."""
        super().give_back()
        if "store" in vars(self):
            self.store.give_back()

    @property
    def tells_changes(self) -> bool:
        """Whether the other store does."""
        return self.store.tells_changes

    def transactions(self) -> Transactions | None:
        """Return those of the other store."""
        return self.store.transactions()

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

    async def list_groups(self, hub_of: ConsumerGroup | None = None) -> Sequence[ConsumerGroup]:
        """Forward the call."""
        return await self.forward(CheckpointStore.list_groups, hub_of)

    async def watch(
        self,
        group: ConsumerGroup,
        owner_id: str,
        changed: Callable[[], object],
    ) -> None:
        """Watch the other store: no request and no answer, so it does not come to ``forward``."""
        await self.store.watch(group, owner_id, changed)
