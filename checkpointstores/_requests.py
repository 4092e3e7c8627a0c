"""Requests of a store to Azure: limited in number, repeated if there is no answer, logged.

Rule 1: a write is repeated only within one call, and only after an attempt without an answer.
Rule 2: after such an attempt a failed condition may be the effect of this call's own first attempt,
so the record is read again: if it has this call's write, the write is won. Otherwise another
processor was first.
Rule 3: a write whose outcome is not known is reported as ``WriteOutcome.UNKNOWN``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from checkpointstores._retries import retried
from eventproc._base.azure_storage.answers import ConditionFailedError, Right
from eventproc._base.azure_storage.connection import Connection
from eventproc._base.logs import ConditionLogger, Logger
from eventproc.errors import (
    ConfigurationError,
    StoreError,
    StoreRejectedError,
)
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ConsumerGroup,
    Member,
    OwnershipClaim,
    PartitionOwnership,
    WriteOutcome,
)

T = TypeVar("T")
FoundT = TypeVar("FoundT")
RecordT = TypeVar("RecordT", Checkpoint, Member)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The version of a record that a write created."""

    etag: str
    last_modified: datetime


@dataclass(frozen=True, slots=True)
class WriteAnswer(Generic[FoundT]):
    """The outcome of a conditional write."""

    outcome: WriteOutcome
    written: Written | None = None
    """Set if the write was won."""

    error: StoreError | None = None
    found: FoundT | None = None
    """What is stored instead, if the write was lost and that was read."""


class Vendor(Protocol):
    """A container or a table through Azure's client."""

    async def open(self) -> None:
        """Connect, and check that it can be used."""

    async def close(self) -> None:
        """Close all connections."""


VendorT = TypeVar("VendorT", bound=Vendor)


class Requests(Generic[VendorT]):
    """Makes requests to a container or a table, each again if it is not answered, while it is open.

    A subclass has a method for each kind of request, as one call that ends with an outcome.
    """

    def __init__(self, vendor: VendorT, log: Logger, *, concurrency_max: int) -> None:
        """*log* has the store as a bound field."""
        self.vendor = vendor
        self._log = log
        self._concurrency_max = concurrency_max
        self._reachability = Reachability(log)
        self._slots: asyncio.Semaphore | None = None
        """The free request slots; ``None`` while it is closed."""

        self._has_written = False
        self._malformed_etag_by_place: dict[object, str] = {}

    async def open(self) -> None:
        """Connect, unless it is open."""
        if self._slots is None:
            await self.vendor.open()
            self._slots = asyncio.Semaphore(self._concurrency_max)

    async def close(self) -> None:
        """Make no more requests, and disconnect."""
        self._slots = None
        await self.vendor.close()

    async def ask(self, right: Right, call: Callable[[], Awaitable[T]]) -> T:
        """Make a request that needs *right*, up to three times if it is not answered.

        *call* makes it once, by ``Connection.ask``.
        """
        if self._slots is None:
            raise RuntimeError("the store is not open: use `async with store` or `await open()`")
        attempt_count = 0

        def attempt() -> Awaitable[T]:
            nonlocal attempt_count
            attempt_count += 1
            return call()

        try:
            async with self._slots:
                answer = await retried(attempt)
        except ConditionFailedError as error:
            error.was_repeated |= attempt_count > 1
            self._reachability.answered(right)
            raise
        except StoreRejectedError as error:
            # The caller of the first write raises this error, so it is not logged here.
            if right is not Right.WRITE or self._has_written:
                self._reachability.refused(right, error)
            raise
        except StoreError as error:
            self._reachability.failed(error)
            raise
        self._reachability.answered(right)
        self._has_written |= right is Right.WRITE
        return answer

    def note_malformed(self, etag: str, reason: str, **place: str) -> None:
        """Log a malformed record once for each of its versions; *place* is the blob or entity."""
        key = tuple(place.values())
        if self._malformed_etag_by_place.get(key) != etag:
            self._malformed_etag_by_place[key] = etag
            self._log.warning("store_record_malformed", **place, etag=etag, reason=reason)


class Reachability:
    """Logs two events for each outage or refusal: its start and its end."""

    def __init__(self, log: Logger) -> None:
        """*log* has the store as a bound field."""
        self._log = log
        self._outage = ConditionLogger(log, "store_requests_failed", "store_requests_recovered")
        self._refusal_by_right: dict[str, str] = {}

    def failed(self, error: Exception) -> None:
        """Note a call that failed temporarily."""
        self._outage.note(error=str(error))

    def refused(self, right: str, error: Exception) -> None:
        """Note a call that the service refused permanently.

        A refusal for the same reason, such as an expired token, is logged once for all rights.
        """
        self._outage.end(failures=self._outage.count)
        if str(error) not in self._refusal_by_right.values():
            self._log.error("store_refused", error=str(error))
        self._refusal_by_right[right] = str(error)

    def answered(self, right: str) -> None:
        """Note a successful call that needed *right*."""
        self._outage.end(failures=self._outage.count)
        refusal = self._refusal_by_right.pop(right, None)
        if refusal is not None and refusal not in self._refusal_by_right.values():
            self._log.info("store_refused_no_longer", error=refusal)


async def connect(
    connection: Connection[Any], *steps: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Open a connection and take these steps, which show that it can be used; or close it again.

    Raises:
        ConfigurationError: the service refuses one of them.
        StoreUnavailableError: no answer.
    """
    await connection.open()
    try:
        for step in steps:
            await retried(step)
    except StoreRejectedError as error:
        await connection.close()
        raise ConfigurationError(str(error)) from error
    except BaseException:
        await connection.close()
        raise


async def outcome_of_deletion(
    etag: str | None,
    delete: Callable[[str], Awaitable[None]],
    read: Callable[[], Awaitable[object]],
) -> WriteOutcome:
    """Delete a record if it still has *etag*, and return the outcome; ``WON`` if there is none."""
    try:
        if etag is not None:
            await delete(etag)
            return WriteOutcome.WON
    except ConditionFailedError:
        pass  # changed or deleted: servers answer differently for a record that does not exist
    except StoreError:
        return WriteOutcome.UNKNOWN
    try:
        found = await read()
    except StoreError:
        return WriteOutcome.UNKNOWN
    return WriteOutcome.WON if found is None else WriteOutcome.LOST


async def replacing_whole(
    read: Callable[[ConsumerGroup, str], Awaitable[Checkpoint | None]],
    group: ConsumerGroup,
    update: CheckpointUpdate,
) -> CheckpointUpdate | CheckpointResult:
    """Return the update with the whole checkpoint that it replaces, or why it cannot be written.

    A checkpoint from a listing has no state; an update that keeps the state needs it.
    """
    replaces = update.replaces
    if replaces is None or not replaces.is_partial or update.state is not None:
        return update
    try:
        whole = await read(group, update.partition_id)
    except StoreError as error:
        return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=error)
    if whole is None or whole.etag != replaces.etag:
        return CheckpointResult(outcome=WriteOutcome.LOST)
    return replace(update, replaces=whole)


def stamped(record: RecordT, written: Written | None) -> RecordT | None:
    """Return a record with its ETag and time; ``None`` if it was not written."""
    if written is None:
        return None
    return replace(record, etag=written.etag, last_modified=written.last_modified)


def claimed(claim: OwnershipClaim, written: Written | None) -> PartitionOwnership | None:
    """Return the ownership record that a claim wrote; ``None`` if it was not written."""
    if written is None:
        return None
    return PartitionOwnership(
        partition_id=claim.partition_id,
        owner_id=claim.owner_id,
        epoch=claim.epoch,
        etag=written.etag,
        last_modified=written.last_modified,
    )
