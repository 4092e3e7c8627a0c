"""What a view reads from the store: damage and pauses, too."""

from datetime import timedelta

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc._command.group.readings import read_group
from eventproc._core.ownership.pauses import PAUSES_RECORD
from eventproc.admin import pause_group
from eventproc.errors import StoreCorruptError
from eventproc.models import CheckpointUpdate, GroupRecord, OwnershipClaim
from tests.unit.eventproc._command.group.views import GROUP, NOW


class DamagedStore(MemoryCheckpointStore):
    """Records which checkpoints are read; some of them are damaged."""

    def __init__(self, account, damaged):
        super().__init__(account)
        self.damaged = damaged
        self.read = []

    async def read_checkpoint(self, group, partition_id):
        """Read it, or raise."""
        self.read.append(partition_id)
        if partition_id in self.damaged:
            raise StoreCorruptError(f"the state of {partition_id} is damaged")
        return await super().read_checkpoint(group, partition_id)


async def test_checkpoints_that_may_be_damaged_are_read_once_for_each_version():
    """One that its present owner has just written is sound; a listing shows writer and time."""
    now = NOW
    store = DamagedStore(MemoryAccount(now=lambda: now), {"1", "2"})
    writers = {"0": "host-1/a/1", "1": "former/b/7", "2": "azure", "3": "host-1/a/2"}
    async with store:
        for partition_id, writer in writers.items():
            claim = OwnershipClaim(partition_id=partition_id, owner_id="host-1", expected_etag=None)
            await store.claim_ownership(GROUP, [claim])
            update = CheckpointUpdate(
                partition_id=partition_id,
                offset="5",
                sequence_number=5,
                replaces=None,
                writer=writer,
            )
            await store.update_checkpoint(GROUP, update)
        error_by_version: dict[tuple[str, str], str | None] = {}
        readings = [await read_group(store, GROUP, None, error_by_version) for _ in range(2)]
        first = sorted(store.read)
        now += timedelta(minutes=2)
        await read_group(store, GROUP, None, error_by_version)

    assert [set(reading.damage) for reading in readings] == [{"1", "2"}] * 2
    assert first == ["1", "2"]
    assert sorted(store.read) == ["0", "1", "2", "3"]


async def test_a_record_of_pauses_that_cannot_be_read_shows_as_a_paused_group():
    """As processors that start take it; the reason has the remedy."""
    async with MemoryCheckpointStore(MemoryAccount(now=lambda: NOW)) as store:
        none = await read_group(store, GROUP, None, {})
        await pause_group(store, GROUP, ["1"], reason="x", expiration=timedelta(seconds=60))
        one = await read_group(store, GROUP, None, {})
        etag = one.present.record_etags[PAUSES_RECORD]
        await store.write_record(GROUP, GroupRecord(name=PAUSES_RECORD, content=b"?", etag=etag))
        damaged = (await read_group(store, GROUP, None, {})).pauses.of("0")

    assert [none.pauses.of("1"), one.pauses.of("0")] == [None, None]
    assert one.pauses.by_partition["1"].reason == "x"
    assert damaged is not None
    assert damaged.since == NOW
    assert "resume the whole group" in damaged.reason
