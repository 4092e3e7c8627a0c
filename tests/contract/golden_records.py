"""The records of the golden files, and what compares a file with what today's code writes."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from checkpointstores.memory import MemoryCheckpointStore
from eventproc._core.delivery.checkpoints import initial_checkpoint, operators_writer, pumps_writer
from eventproc.models import (
    IN_BATCH,
    IN_PART,
    CheckpointUpdate,
    ConsumerGroup,
    GroupRecord,
    Member,
    MemberStatus,
    OffsetFormat,
    OwnershipClaim,
    SequenceRange,
)
from eventproc.ports import CheckpointStore
from spark_integration._sink.records import TaskId

GROUP = ConsumerGroup(
    fully_qualified_namespace="Contoso.servicebus.windows.net:5671", eventhub_name="Orders"
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)

OWNERSHIP = [
    OwnershipClaim(partition_id="0", owner_id="host-1", expected_etag=None, epoch=7),
    OwnershipClaim(partition_id="1", owner_id=None, expected_etag=None, epoch=8),
    OwnershipClaim(partition_id="2", owner_id="Köln 50%", expected_etag=None),
]
"""An owned partition, a released one, and one of an Azure SDK, which writes no epoch."""

MEMBERS = [
    Member(owner_id="defaults", incarnation="a1"),
    Member(
        owner_id="a.b/Köln 50%",
        incarnation="a2",
        status=MemberStatus.STANDBY,
        hands_over=False,
        weight=0.5,
        capacity=3,
        ordinal=0,
        placement="Ring:bound=1.25",
        load="busy 0=0.25,*=0.0004",
        deployment_id="2026-11-22 (grün)",
        offset_format=OffsetFormat.KAFKA,
        version="1.2.3",
    ),
    *(Member(owner_id=each.name, incarnation="a3", status=each) for each in MemberStatus),
    *(Member(owner_id=each.name, incarnation="a4", offset_format=each) for each in OffsetFormat),
    Member(owner_id="long-" * 42, incarnation="a5"),
]

TASK = TaskId(query_id="0b1c2d3e", batch_id=7, run_id="4f5a6b7c", task=3)
"""A task of the Spark sink."""

STATE = b"\x00\xff{}"
WRITER = pumps_writer("Köln 50%", "0a1b", 8)


def at(number: int, **values: Any) -> CheckpointUpdate:
    """Return an update to a position; the caller sets the partition."""
    position: dict[str, Any] = {
        "partition_id": "",
        "offset": str(number * 100),
        "sequence_number": number,
        "writer": WRITER,
        "replaces": None,
    }
    return CheckpointUpdate(**(position | values))


DONE = (SequenceRange(44, 46), SequenceRange(50, 50))
BEGUN = at(-1, offset="-1", writer=TASK.writer, isolation=IN_BATCH)
CHECKPOINTS: dict[str, list[CheckpointUpdate]] = {
    "position": [at(42)],
    "state": [at(42, state=STATE)],
    "state of an earlier position": [at(40, state=STATE), at(42)],
    "completed": [at(42, completed=DONE)],
    "begun": [at(42, isolation=IN_PART)],
    "everything": [at(40, state=STATE), at(42, completed=DONE, isolation=IN_BATCH)],
    "state that was removed": [at(40, state=STATE), at(42, state=b"")],
    "Kafka": [at(42, offset="kafka:4711")],
    "before the first event": [initial_checkpoint("", pumps_writer("host-1", "0a1b", 9))],
    "moved by an operator": [at(42, writer=operators_writer("0a1b"))],
    "begun by the Spark sink": [BEGUN],
    "committed by the Spark sink": [BEGUN, at(42, writer=TASK.writer, state=STATE)],
}
"""The updates of each partition, in turn. The partition's name says what its checkpoint has."""

RECORD = GroupRecord(name="plan", content=b'{"version":1}')


async def write_all(store: CheckpointStore) -> None:
    """Write every record."""
    await store.claim_ownership(GROUP, OWNERSHIP)
    for member in MEMBERS:
        await store.announce_member(GROUP, member)
    for partition_id, updates in CHECKPOINTS.items():
        found = None
        for update in updates:
            placed = replace(update, partition_id=partition_id, replaces=found)
            found = (await store.update_checkpoint(GROUP, placed)).checkpoint
    await store.write_record(GROUP, RECORD)


async def read_all(store: CheckpointStore) -> dict[str, Any]:
    """Return every record, without ETags and times."""
    owners = (await store.list_ownership(GROUP)).ownerships
    listed = await store.list_members(GROUP)
    checkpoints = [
        await store.read_checkpoint(GROUP, found.partition_id)
        for found in await store.list_checkpoints(GROUP)
    ]
    record = await store.read_record(GROUP, RECORD.name)
    assert record is not None
    return {
        "owners": {o.partition_id: (o.owner_id, o.epoch) for o in owners},
        "members": {m.owner_id: replace(m, etag=None, last_modified=None) for m in listed.members},
        "checkpoints": {
            c.partition_id: replace(c, etag="", last_modified=NOW) for c in checkpoints if c
        },
        "records": dict.fromkeys(listed.record_etags, record.content),
    }


async def written_records() -> dict[str, Any]:
    """Return what a store has after ``write_all``."""
    async with MemoryCheckpointStore() as store:
        await write_all(store)
        return await read_all(store)


# --- golden files --------------------------------------------------------------------------------

GOLDEN = Path(__file__).parent / "golden"


def golden_text(name: str) -> str:
    """Return what a golden file has."""
    return (GOLDEN / name).read_text("utf-8")


def check_written(name: str, text: str) -> None:
    """Assert that today's code wrote what the golden file has; or write the file, if asked to."""
    if os.environ.get("WRITE_GOLDEN"):
        (GOLDEN / name).write_text(text, "utf-8")
    assert _ordered(name, text) == _ordered(name, golden_text(name))


def _ordered(name: str, text: str) -> str:
    """Return a text with the names of JSON objects in order: no format depends on their order."""
    return json.dumps(json.loads(text), sort_keys=True) if name.endswith(".json") else text


def as_json(values: Any) -> str:
    """Return values as JSON for people. Bytes are text: each character is one byte."""
    return json.dumps(values, indent=1, ensure_ascii=False, default=_of_bytes) + "\n"


def _of_bytes(value: bytes) -> dict[str, Any]:
    text = value.decode("latin-1")
    if len(value) > 1 and len(set(value)) == 1:
        return {"bytes": text[0], "times": len(value)}
    return {"bytes": text}


def from_json(text: str) -> Any:
    """The reverse of ``as_json``."""
    return json.loads(text, object_hook=_to_bytes)


def _to_bytes(found: dict[str, Any]) -> Any:
    is_bytes = "bytes" in found and found.keys() <= {"bytes", "times"}
    return found["bytes"].encode("latin-1") * found.get("times", 1) if is_bytes else found


def names() -> Any:
    """Return a function that returns a new name at each call: an ETag, or the name of a write."""
    numbers = count(1)
    return lambda: f"{next(numbers):016x}"
