"""Requests to a blob container: their repetition, and the outcomes of conditional writes.

Rule 1: a write is repeated only within one call, and only after an attempt without an answer.
Rule 2: after such an attempt a failed condition may be the effect of this call's own first attempt,
so the blob is read to see which processor wrote it. Otherwise a failed condition is a lost race.
Rule 3: a write whose outcome is not known is reported as ``WriteOutcome.UNKNOWN``.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from checkpointstores.blob.container import (
    BlobContainer,
    BlobItem,
    ConditionFailedError,
    Right,
    Written,
)
from checkpointstores.reachability import Reachability
from checkpointstores.retry import retried
from eventproc.errors import StoreError, StoreRejectedError, StoreUnavailableError
from eventproc.logs import get_logger
from eventproc.models import WriteOutcome

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Opened:
    """What exists only while the store is open."""

    container: BlobContainer
    slots: asyncio.Semaphore


@dataclass(frozen=True, slots=True)
class WriteAnswer:
    """The outcome of a conditional write."""

    outcome: WriteOutcome
    written: Written | None = None
    error: StoreError | None = None


class RoundTrips:
    """Makes requests to one container while it is attached."""

    def __init__(self, place: str, *, concurrency_max: int) -> None:
        """*place* names the container without secrets, for messages and logs."""
        self._place = place
        self._log = get_logger("eventproc.stores.blob", container=place)
        self._reachability = Reachability(self._log)
        self._concurrency_max = concurrency_max
        self._malformed_etag_by_name: dict[str, str] = {}
        self._opened: _Opened | None = None
        self._has_written = False

    def _attach(self, container: BlobContainer) -> None:
        """Use this container from now on."""
        self._opened = _Opened(container, asyncio.Semaphore(self._concurrency_max))

    def _detach(self) -> None:
        """Stop using the container."""
        self._opened = None

    async def _ask(self, right: Right, call: Callable[[BlobContainer], Awaitable[T]]) -> T:
        """Make a request, up to ``ATTEMPTS`` times if it is not answered."""
        if self._opened is None:
            raise RuntimeError("the store is not open: use `async with store` or `await open()`")
        container = self._opened.container
        try:
            async with self._opened.slots:
                answer = await retried(lambda: call(container))
        except ConditionFailedError:
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
        return answer

    async def _write(
        self,
        name: str,
        write: Callable[[BlobContainer], Awaitable[Written]],
        *,
        is_mine: Callable[[BlobItem], bool],
        body_bytes_max: int = 0,
    ) -> WriteAnswer:
        """Write, up to ``ATTEMPTS`` times if it is not answered, and return the outcome."""
        is_unanswered = False

        async def attempt(container: BlobContainer) -> Written:
            nonlocal is_unanswered
            try:
                return await write(container)
            except StoreUnavailableError:
                is_unanswered = True
                raise

        try:
            written = await self._ask(Right.WRITE, attempt)
        except ConditionFailedError as error:
            if not is_unanswered and not error.was_repeated:
                return WriteAnswer(WriteOutcome.LOST)
        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        else:
            self._has_written = True
            return WriteAnswer(WriteOutcome.WON, written)
        try:
            found = await self._ask(
                Right.READ, lambda container: container.read(name, body_bytes_max=body_bytes_max)
            )
        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        if found is not None and is_mine(found):
            version = Written(etag=found.etag, last_modified=found.last_modified)
            return WriteAnswer(WriteOutcome.WON, version)
        return WriteAnswer(WriteOutcome.LOST)

    def _note_malformed(self, item: BlobItem, what: str) -> None:
        """Log a malformed blob once for each of its versions."""
        if self._malformed_etag_by_name.get(item.name) != item.etag:
            self._malformed_etag_by_name[item.name] = item.etag
            self._log.warning("store_record_malformed", blob=item.name, etag=item.etag, reason=what)
