"""Requests to a table: repeated, and with the outcomes of conditional writes.

Every write has an id, which shows after a failed condition whether an earlier attempt of the same
call succeeded, although it had no answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from checkpointstores._requests import Requests, outcome_of_deletion
from checkpointstores.tables._entities import WRITE
from checkpointstores.tables._table import Entity, Key, Listing, Table, Values, Write, Written
from eventproc._base.azure_storage.answers import ConditionFailedError, Right
from eventproc._base.logs import Logger
from eventproc.errors import StoreError
from eventproc.models import WriteOutcome


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


class RoundTrips:
    """Makes requests to one table while it is open."""

    def __init__(self, table: Table, log: Logger, *, concurrency_max: int) -> None:
        self.table = table
        self._requests = Requests(log, concurrency_max=concurrency_max)
        self.note_malformed = self._requests.note_malformed

    async def open(self) -> None:
        """Open the table, unless it is open."""
        if not self._requests.is_open:
            await self.table.open()
            self._requests.open()

    async def close(self) -> None:
        """Close the table."""
        self._requests.close()
        await self.table.close()

    async def list(self, partition: str, *columns: str) -> Listing:
        """Return the entities of a partition key, with the named properties."""
        return await self._requests.ask(Right.LIST, partial(self.table.list, partition, columns))

    async def read(self, key: Key) -> Entity | None:
        """Return an entity with all properties, or ``None``."""
        return await self._requests.ask(Right.READ, partial(self.table.read, key))

    async def write_together(self, writes: Sequence[Write]) -> Sequence[Written]:
        """Make conditional writes, all or none of them."""
        return await self._requests.ask(Right.WRITE, partial(self.table.write_together, writes))

    async def put(self, key: Key, values: Values) -> None:
        """Write an entity, whether it exists or not."""
        await self._requests.ask(Right.WRITE, partial(self.table.put, key, values))

    async def remove(self, key: Key, etag: str | None = None) -> None:
        """Delete an entity of the version *etag*; ``None``: of any version."""
        await self._requests.ask(Right.DELETE, partial(self.table.delete, key, etag=etag))

    async def delete(self, key: Key, etag: str | None) -> WriteOutcome:
        """Delete an entity if it still has *etag*; ``WON`` too if there is none."""
        return await outcome_of_deletion(etag, partial(self.remove, key), partial(self.read, key))

    async def write(self, write: Write) -> WriteAnswer:
        """Make a conditional write, and return its outcome."""
        try:
            written = await self._requests.ask(Right.WRITE, partial(self.table.write, write))
        except ConditionFailedError:
            return await self._read_outcome(write)
        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        if written.last_modified is None:  # the ETag does not contain its time
            return await self._read_outcome(write)
        return WriteAnswer(WriteOutcome.WON, written.etag, written.last_modified)

    async def _read_outcome(self, write: Write) -> WriteAnswer:
        """Read the entity, and return the outcome that it shows."""
        try:
            found = await self.read(write.key)
        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        return answer_in(write, found)


def answer_in(write: Write, found: Entity | None) -> WriteAnswer:
    """Return the outcome of a write, from the entity that is stored now."""
    if found is not None and found.values.get(WRITE) == write.values[WRITE]:
        return WriteAnswer(WriteOutcome.WON, found.etag, found.last_modified)
    return WriteAnswer(WriteOutcome.LOST, found=found)
