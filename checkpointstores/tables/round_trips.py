"""Requests to a table: their repetition, and the outcomes of conditional writes.

Rule 1: a write is repeated only within one call, and only after an attempt without an answer.
Rule 2: after a failed condition the entity is read: if it has the id of this write, an attempt
without an answer had succeeded, and the write is won. Otherwise another processor was first.
Rule 3: a write whose outcome is not known is reported as ``WriteOutcome.UNKNOWN``.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from checkpointstores.requests import ConditionFailedError, Requests
from checkpointstores.tables.entities import WRITE
from checkpointstores.tables.table import (
    Entity,
    Right,
    Table,
    Write,
    Written,
)
from eventproc.errors import StoreError
from eventproc.logs import get_logger
from eventproc.models import WriteOutcome

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WriteAnswer:
    """The outcome of a conditional write."""

    outcome: WriteOutcome
    etag: str = ""
    last_modified: datetime | None = None
    """Set together with ``etag`` if the write was won."""

    found: Entity | None = None
    """What is stored instead, if the write was lost."""

    error: StoreError | None = None


class RoundTrips(Requests[Table]):
    """Makes requests to one table while it is attached."""

    def __init__(self, place: str, *, concurrency_max: int) -> None:
        """*place* names the table without secrets, for messages and logs."""
        log = get_logger("eventproc.stores.tables", table=place)
        super().__init__(log, write_right=Right.WRITE, concurrency_max=concurrency_max)
        self._place = place

    async def _read(self, call: Callable[[Table], Awaitable[T]]) -> T:
        """Make a request that reads."""
        return await self._ask(Right.READ, call)

    async def _change(self, call: Callable[[Table], Awaitable[T]]) -> T:
        """Make a request that writes."""
        return await self._ask(Right.WRITE, call)

    async def _write(self, write: Write) -> WriteAnswer:
        """Write, up to ``ATTEMPTS`` times if it is not answered, and return the outcome."""
        try:
            written = await self._change(lambda table: table.write(write))
        except ConditionFailedError:
            return await self._read_outcome(write)
        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        return await self._dated(write, written)

    async def _dated(self, write: Write, written: Written) -> WriteAnswer:
        """Return the answer for a won write; read its time if the ETag does not contain it."""
        if written.last_modified is None:
            return await self._read_outcome(write)
        return WriteAnswer(WriteOutcome.WON, written.etag, written.last_modified)

    async def _read_outcome(self, write: Write) -> WriteAnswer:
        """Read the entity, and return the outcome that it shows."""
        try:
            found = await self._read(lambda table: table.read(write.key))
        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        return answer_in(write, found)


def answer_in(write: Write, found: Entity | None) -> WriteAnswer:
    """Return the outcome of a write, from the entity that is stored now."""
    if found is not None and found.values.get(WRITE) == write.values[WRITE]:
        return WriteAnswer(WriteOutcome.WON, found.etag, found.last_modified)
    return WriteAnswer(WriteOutcome.LOST, found=found)
