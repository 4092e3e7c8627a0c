"""Requests to a table: repeated, and with the outcomes of conditional writes.

Every write has an id, which shows after a failed condition whether an earlier attempt of the same
call succeeded, although it had no answer.
"""

from collections.abc import Sequence
from functools import partial

from checkpointstores._requests import Requests, WriteAnswer, Written, outcome_of_deletion
from checkpointstores.tables._entities import WRITE
from checkpointstores.tables._table import Entity, Key, Listing, Table, Values, Write
from eventproc._base.azure_storage.answers import ConditionFailedError, Right
from eventproc.errors import StoreError
from eventproc.models import WriteOutcome

EntityAnswer = WriteAnswer[Entity]


class TableRequests(Requests[Table]):
    """The requests of a store to one table."""

    async def list(self, partition: str, *columns: str) -> Listing:
        """Return the entities of a partition key, with the named properties."""
        return await self.ask(Right.LIST, partial(self.vendor.list, partition, columns))

    async def read(self, key: Key) -> Entity | None:
        """Return an entity with all properties, or ``None``."""
        return await self.ask(Right.READ, partial(self.vendor.read, key))

    async def write_together(self, writes: Sequence[Write]) -> Sequence[Written | None]:
        """Make conditional writes, all or none of them."""
        return await self.ask(Right.WRITE, partial(self.vendor.write_together, writes))

    async def put(self, key: Key, values: Values) -> None:
        """Write an entity, whether it exists or not."""
        await self.ask(Right.WRITE, partial(self.vendor.put, key, values))

    async def remove(self, key: Key, etag: str | None = None) -> None:
        """Delete an entity of the version *etag*; ``None``: of any version."""
        await self.ask(Right.DELETE, partial(self.vendor.delete, key, etag=etag))

    async def delete(self, key: Key, etag: str | None) -> WriteOutcome:
        """Delete an entity if it still has *etag*; ``WON`` too if there is none."""
        return await outcome_of_deletion(etag, partial(self.remove, key), partial(self.read, key))

    async def write(self, write: Write) -> EntityAnswer:
        """Make a conditional write, and return its outcome."""
        try:
            written = await self.ask(Right.WRITE, partial(self.vendor.write, write))
        except ConditionFailedError:
            return await self._read_outcome(write)
        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        if written is None:
            return await self._read_outcome(write)
        return WriteAnswer(WriteOutcome.WON, written)

    async def _read_outcome(self, write: Write) -> EntityAnswer:
        """Read the entity, and return the outcome that it shows."""
        try:
            found = await self.read(write.key)
        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        return answer_in(write, found)


def answer_in(write: Write, found: Entity | None) -> EntityAnswer:
    """Return the outcome of a write, from the entity that is stored now."""
    if found is not None and found.values.get(WRITE) == write.values[WRITE]:
        written = Written(etag=found.etag, last_modified=found.last_modified)
        return WriteAnswer(WriteOutcome.WON, written)
    return WriteAnswer(WriteOutcome.LOST, found=found)
