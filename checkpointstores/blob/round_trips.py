"""Requests to a blob container: their repetition, and the outcomes of conditional writes.

Rule 1: a write is repeated only within one call, and only after an attempt without an answer.
Rule 2: after such an attempt a failed condition may be the effect of this call's own first attempt,
so the blob is read again: if it has this call's values, the write is won. Otherwise another
processor was first.
Rule 3: a write whose outcome is not known is reported as ``WriteOutcome.UNKNOWN``.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from checkpointstores.blob.container import (
    BlobContainer,
    BlobItem,
    Right,
    Written,
)
from checkpointstores.requests import ConditionFailedError, Requests
from eventproc.errors import StoreError, StoreUnavailableError
from eventproc.logs import get_logger
from eventproc.models import WriteOutcome


@dataclass(frozen=True, slots=True)
class WriteAnswer:
    """The outcome of a conditional write."""

    outcome: WriteOutcome
    written: Written | None = None
    error: StoreError | None = None


class RoundTrips(Requests[BlobContainer]):
    """Makes requests to one container while it is attached."""

    def __init__(self, place: str, *, concurrency_max: int) -> None:
        """*place* names the container without secrets, for messages and logs."""
        log = get_logger("eventproc.stores.blob", container=place)
        super().__init__(log, write_right=Right.WRITE, concurrency_max=concurrency_max)
        self._place = place
        self._malformed_etag_by_name: dict[str, str] = {}

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
