"""Requests to a table: their repetition, and the outcomes of conditional writes.

Rule 1: a write is repeated only within one call, and only after an attempt without an answer.
Rule 2: after a failed condition the entity is read: if it has the name of this write, an attempt
without an answer had succeeded, and the write is won. Otherwise it is a lost race.
Rule 3: a write whose outcome is not known is reported as ``WriteOutcome.UNKNOWN``.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from checkpointstores.reachability import Reachability
from checkpointstores.retry import retried
from checkpointstores.tables.entities import WRITE
from checkpointstores.tables.table import (
    ConditionFailedError,
    Entity,
    Right,
    Table,
    Write,
    Written,
)
from eventproc.errors import StoreError, StoreRejectedError
from eventproc.logs import get_logger
from eventproc.models import WriteOutcome

T = TypeVar("T")


def new_name() -> str:
    """Return a random name for one write."""
    return secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class _Opened:
    """What exists only while the store is open."""

    table: Table
    slots: asyncio.Semaphore


@dataclass(frozen=True, slots=True)
class WriteAnswer:
    """The outcome of a conditional write."""

    outcome: WriteOutcome
    etag: str = ""
    last_modified: datetime | None = None
    """With ``etag``, of a write that was won."""

    found: Entity | None = None
    """What is stored instead, if the write was lost."""

    error: StoreError | None = None


class RoundTrips:
    """Makes requests to one table while it is attached."""

    def __init__(self, place: str, *, concurrency_max: int) -> None:
        """*place* names the table without secrets, for messages and logs."""
        self._place = place
        self._log = get_logger("eventproc.stores.tables", table=place)
        self._reachability = Reachability(self._log)
        self._concurrency_max = concurrency_max
        self._opened: _Opened | None = None
        self._has_written = False

    def _attach(self, table: Table) -> None:
        """Use this table from now on."""
        self._opened = _Opened(table, asyncio.Semaphore(self._concurrency_max))

    def _detach(self) -> None:
        """Stop using the table."""
        self._opened = None

    async def _ask(
        self, call: Callable[[Table], Coroutine[Any, Any, T]], right: Right = Right.READ
    ) -> T:
        """Make a request, up to ``ATTEMPTS`` times if it is not answered."""
        if self._opened is None:
            raise RuntimeError("the store is not open: use `async with store` or `await open()`")
        table = self._opened.table
        try:
            async with self._opened.slots:
                answer = await retried(lambda: call(table))
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

    async def _change(self, call: Callable[[Table], Coroutine[Any, Any, T]]) -> T:
        """Make a request that writes."""
        answer = await self._ask(call, Right.WRITE)
        self._has_written = True
        return answer

    async def _write(self, write: Write) -> WriteAnswer:
        """Write, up to ``ATTEMPTS`` times if it is not answered, and return the outcome."""
        try:
            written = await self._change(lambda table: table.write(write))
        except ConditionFailedError:
            return await self._settled(write)
        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        return await self._dated(write, written)

    async def _dated(self, write: Write, written: Written) -> WriteAnswer:
        """Return a write that was won, with its time; read it if its ETag does not tell."""
        if written.last_modified is None:
            return await self._settled(write)
        return WriteAnswer(WriteOutcome.WON, written.etag, written.last_modified)

    async def _settled(self, write: Write) -> WriteAnswer:
        """Read whether an entity has this write."""
        try:
            found = await self._ask(lambda table: table.read(write.key))
        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        return answer_in(write, found)


def answer_in(write: Write, found: Entity | None) -> WriteAnswer:
    """Return the outcome of a write, from the entity that is stored now."""
    if found is not None and found.values.get(WRITE) == write.values[WRITE]:
        return WriteAnswer(WriteOutcome.WON, found.etag, found.last_modified)
    return WriteAnswer(WriteOutcome.LOST, found=found)
