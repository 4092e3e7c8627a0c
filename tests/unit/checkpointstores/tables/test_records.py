"""The table store over a table in memory: what is read again, and what is never deleted or won."""

from dataclasses import replace
from itertools import count

import pytest

from checkpointstores._requests import Written
from checkpointstores.tables import TableCheckpointStore
from checkpointstores.tables._contents import INLINE_MAX
from checkpointstores.tables._entities import WRITE
from checkpointstores.tables._table import Entity, Key, Listing
from eventproc._base.azure_storage.answers import ConditionFailedError
from eventproc.errors import StoreRejectedError, StoreUnavailableError
from eventproc.models import ConsumerGroup, WriteOutcome
from tests.contract.golden_records import NOW
from tests.unit.checkpointstores.updates import update_of

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
LARGE = b"x" * (INLINE_MAX + 1)


class MemoryTable:
    """A table in this process, with conditions, and failures that a test asks for."""

    def __init__(self):
        self._numbers = count(1)
        self.entities = {}
        self.before = {}
        """What is called before the next request of a kind."""

    def _begin(self, kind):
        self.before.pop(kind, lambda: None)()

    def keep(self, key, values):
        """Store a version."""
        entity = Entity(key=key, etag=f"e{next(self._numbers)}", last_modified=NOW, values=values)
        self.entities[key.partition, key.row] = entity
        return entity

    async def list(self, partition, columns, *, row_prefix=""):
        self._begin("list")
        found = [one for one in self.entities.values() if one.key.partition == partition]
        return Listing(entities=tuple(found), as_of=NOW)

    async def read(self, key):
        self._begin("part" if key.partition.endswith("part") else "read")
        return self.entities.get((key.partition, key.row))

    async def write(self, write):
        self._begin("write")
        found = self.entities.get((write.key.partition, write.key.row))
        if (found.etag if found else None) != write.etag:
            raise ConditionFailedError
        kept = dict(found.values) if found else {}
        entity = self.keep(write.key, kept | dict(write.values))
        self._begin("written")
        return Written(etag=entity.etag, last_modified=NOW)

    async def put(self, key, values):
        self.keep(key, values)

    async def delete(self, key, *, etag):
        self.entities.pop((key.partition, key.row), None)

    async def open(self):
        """Do nothing: there is no connection."""

    @property
    def parts(self):
        """The parts of large contents."""
        return [key for key in self.entities if key[0].endswith("part")]


async def opened(table):
    """Return an open store over a ``MemoryTable``."""
    store = TableCheckpointStore("https://memory.table.core.windows.net?sig=x", "memory")
    store._entities.vendor = table
    await store.open()
    return store


@pytest.fixture(name="table")
def _table():
    """Return an empty table."""
    return MemoryTable()


def fail(error):
    """Return a function that raises it."""

    def raise_it():
        raise error

    return raise_it


async def test_parts_stay_while_it_is_not_known_whether_a_record_names_them(table):
    """The write took effect, and the store was not told so."""
    table.before = {"written": fail(StoreRejectedError("no right"))}
    result = await (await opened(table)).update_checkpoint(GROUP, update_of(1, None, LARGE))
    found = await (await opened(table)).read_checkpoint(GROUP, "0")

    assert result.outcome is WriteOutcome.UNKNOWN
    assert len(table.parts) == 1
    assert found is not None
    assert found.state == LARGE


async def test_parts_that_no_record_names_any_more_are_deleted(table):
    """Those of a state that was replaced, and of a write that was lost."""
    store = await opened(table)
    first = await store.update_checkpoint(GROUP, update_of(1, None, LARGE))
    await store.update_checkpoint(GROUP, update_of(2, first.checkpoint, LARGE))
    lost = await store.update_checkpoint(GROUP, update_of(3, None, LARGE))

    assert lost.outcome is WriteOutcome.LOST
    assert len(table.parts) == 1


async def test_parts_stay_when_the_next_owner_has_adopted_a_write_without_an_answer(table):
    """Its adoption names another write, and the same parts."""
    store, other = await opened(table), await opened(table)

    def adopt_and_lose_the_answer():
        ((key, entity),) = [e for e in table.entities.items() if not e[0][0].endswith("part")]
        table.entities[key] = replace(
            entity, etag="adopted", values={**entity.values, WRITE: "the adoption"}
        )
        raise StoreUnavailableError("no answer")

    table.before = {"written": adopt_and_lose_the_answer}
    result = await store.update_checkpoint(GROUP, update_of(1, None, LARGE))
    found = await other.read_checkpoint(GROUP, "0")

    assert result.outcome is WriteOutcome.LOST
    assert found is not None
    assert found.state == LARGE


async def test_a_failed_condition_that_cannot_be_read_is_unknown(table):
    """An earlier attempt may have been the one that changed the entity."""
    table.before = {"write": fail(ConditionFailedError()), "read": fail(StoreRejectedError("no"))}
    result = await (await opened(table)).update_checkpoint(GROUP, update_of(1, None, b"small"))

    assert result.outcome is WriteOutcome.UNKNOWN


async def test_a_state_that_is_replaced_while_it_is_read_is_read_again(table):
    """Its parts are gone then, and the new ones are named by the new record."""
    store, other = await opened(table), await opened(table)
    first = (await store.update_checkpoint(GROUP, update_of(1, None, LARGE))).checkpoint
    held = dict(table.entities)
    await store.update_checkpoint(GROUP, update_of(2, first, LARGE + b"y"))
    replaced = table.entities
    table.entities = {key: one for key, one in held.items() if not key[0].endswith("part")}

    def show():
        table.entities = replaced

    table.before = {"part": lambda: table.before.update(read=show)}
    found = await other.read_checkpoint(GROUP, "0")

    assert found is not None
    assert (found.sequence_number, found.state) == (2, LARGE + b"y")


async def test_an_update_of_a_listed_position_that_is_out_of_date_is_lost(table):
    """Its state is read first, and that must not hide that the record has changed."""
    store = await opened(table)
    first = (await store.update_checkpoint(GROUP, update_of(1, None, b"s"))).checkpoint
    [listed] = await store.list_checkpoints(GROUP)
    await store.update_checkpoint(GROUP, update_of(2, first))
    result = await store.update_checkpoint(GROUP, update_of(3, listed))

    assert result.outcome is WriteOutcome.LOST


async def test_a_malformed_entity_is_logged_once_for_each_version(table, caplog):
    """A listing is repeated all the time."""
    store = await opened(table)
    key = Key(partition="ns hub $default ownership", row="x")
    for _ in range(2):
        table.keep(key, {"foreign": 1})
        for _ in range(3):
            assert (await store.list_ownership(GROUP)).ownerships == ()

    assert caplog.text.count("store_record_malformed") == 2


async def test_a_temporary_failure_is_repeated(table):
    """A read or write that was not answered is made again in the same call."""
    table.before = {"written": fail(StoreUnavailableError("no answer"))}
    result = await (await opened(table)).update_checkpoint(GROUP, update_of(1, None, b"s"))

    assert result.outcome is WriteOutcome.WON
