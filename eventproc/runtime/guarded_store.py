"""Wraps the checkpoint store of a processor, so that only errors of eventproc come out of it.

Rule 1: any other exception counts as an unknown outcome: a read raises ``StoreError`` from it, and
a write reports ``UNKNOWN``. So a bug in an adapter, or an error of a client library that an adapter
does not translate, does not end the processor.
Rule 2: such an exception is logged once for each method, and again only after the method succeeded.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Concatenate, NoReturn, ParamSpec, TypeVar

from eventproc.concurrency.tasks import cancellation_kept
from eventproc.errors import ConfigurationError, StoreError
from eventproc.logs import Logger, shown
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    Member,
    MemberResult,
    MembershipSnapshot,
    OwnershipClaim,
    OwnershipSnapshot,
    WriteOutcome,
)
from eventproc.partition.stop_scope import is_cancelled
from eventproc.ports import CheckpointStore

T = TypeVar("T")
P = ParamSpec("P")


class GuardedStore(CheckpointStore):
    """A checkpoint store that calls another one, and translates its unexpected exceptions."""

    def __init__(self, store: CheckpointStore, log: Logger) -> None:
        self._store = store
        self._name = type(store).__name__
        self._log = log
        self._failing: set[str] = set()
        """Methods that raised an unexpected exception, and have not succeeded since."""

    def __repr__(self) -> str:
        return repr(self._store)

    async def open(self) -> None:
        """Open the store; an unexpected exception becomes a ``StoreError``."""
        await self._call(CheckpointStore.open)

    async def close(self) -> None:
        """Close the store; an error is only logged."""
        try:
            await self._call(CheckpointStore.close)
        except StoreError as error:
            self._log.warning("store_close_failed", error=str(error))

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """List as the store does."""
        return await self._call(CheckpointStore.list_ownership, group)

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Claim as the store does; if it raises, the outcome of every claim is unknown."""
        try:
            return await self._call(CheckpointStore.claim_ownership, group, claims)
        except StoreError as error:
            return [
                ClaimResult(claim=claim, outcome=WriteOutcome.UNKNOWN, error=error)
                for claim in claims
            ]

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        """List as the store does."""
        return await self._call(CheckpointStore.list_members, group)

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        """Write as the store does; if it raises, the outcome is unknown."""
        try:
            return await self._call(CheckpointStore.announce_member, group, member)
        except StoreError as error:
            return MemberResult(outcome=WriteOutcome.UNKNOWN, error=error)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        """Delete as the store does; if it raises, the outcome is unknown."""
        try:
            return await self._call(CheckpointStore.withdraw_member, group, member)
        except StoreError:
            return WriteOutcome.UNKNOWN

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        """List as the store does."""
        return await self._call(CheckpointStore.list_checkpoints, group)

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        """Read as the store does."""
        return await self._call(CheckpointStore.read_checkpoint, group, partition_id)

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Write as the store does; if it raises, the outcome is unknown."""
        try:
            return await self._call(CheckpointStore.update_checkpoint, group, update)
        except StoreError as error:
            return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=error)

    async def _call(
        self,
        method: Callable[Concatenate[CheckpointStore, P], Awaitable[T]],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call the store; raise only ``StoreError`` and ``ConfigurationError``."""
        name = method.__name__
        try:
            with cancellation_kept():
                answer: T = await getattr(self._store, name)(*arguments, **options)
        except (StoreError, ConfigurationError):
            raise
        except asyncio.CancelledError as cancellation:
            if is_cancelled():
                raise
            self._refuse(name, cancellation)
        except Exception as error:  # noqa: BLE001 - the one place around the user's store
            self._refuse(name, error)
        if name in self._failing:
            self._failing.discard(name)
            self._log.info("store_call_recovered", call=name)
        return answer

    def _refuse(self, name: str, error: BaseException) -> NoReturn:
        translated = StoreError(
            f"{self._name}.{name} raised {shown(error)}, which no checkpoint store may raise: "
            "raise one of the errors of eventproc.errors instead (StoreUnavailableError: no answer)"
        )
        if name not in self._failing:
            self._failing.add(name)
            self._log.error("store_call_failed", call=name, error=shown(error), exc_info=error)
        raise translated from error
