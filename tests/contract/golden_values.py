"""The values of the golden records, and the stores that they are read from and written to."""

import json
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from checkpointstores.blob.container import BlobItem, Listing, Written
from checkpointstores.blob.records import BlobRecords
from checkpointstores.sqlite.clock import Boot, HostClock
from eventproc.models import (
    CheckpointUpdate,
    ConsumerGroup,
    LeaseMode,
    Member,
    MemberStatus,
    OffsetFormat,
    OwnershipClaim,
    SequenceRange,
)

GOLDEN = Path(__file__).parent / "golden"
VALUES = json.loads((GOLDEN / "values.json").read_text("utf-8"))
GROUP = ConsumerGroup(**VALUES["group"])
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOW_US = int(NOW.timestamp()) * 1_000_000


class MemoryContainer:
    """A blob container in this process, which ignores the conditions of writes."""

    def __init__(self, blobs=()):
        self._versions = count(1)
        self.blobs = {}
        for blob in blobs:
            self._keep(blob["name"], blob["metadata"], bytes.fromhex(blob["body"]))

    def _keep(self, name, metadata, body):
        etag = f"version {next(self._versions)}"
        self.blobs[name] = BlobItem(
            name=name, etag=etag, last_modified=NOW, metadata=metadata, body=body
        )
        return Written(etag=etag, last_modified=NOW)

    async def list(self, prefix):
        items = tuple(item for name, item in self.blobs.items() if name.startswith(prefix))
        return Listing(items=items, as_of=NOW)

    async def read(self, name, *, body_bytes_max=0):
        return self.blobs.get(name)

    async def put(self, name, metadata, body, *, etag):
        return self._keep(name, metadata, body)

    async def set_metadata(self, name, metadata, *, etag):
        return self._keep(name, metadata, self.blobs[name].body)


class BlobStore(BlobRecords):
    """The blob store over a ``MemoryContainer``."""

    def __init__(self, container):
        super().__init__("golden", concurrency_max=1, legacy_prefix=None)
        self._attach(container)

    async def open(self):
        """Do nothing: the store is attached to its container from the start."""

    async def close(self):
        """Do nothing: there is no connection."""


class StoppedClock(HostClock):
    """A host clock that always shows the same time."""

    def wall_us(self):
        return NOW_US

    def elapsed_us(self):
        return 0

    def boot(self):
        return Boot(boot_id="boot", began_us=0)


def as_member(values):
    """Return today's ``Member`` for a member in the file, which has today's field names and stored
    words."""
    values = {"status": "active", "lease_mode": "partition", "offset_format": "amqp"} | values
    return Member(
        **values
        | {
            "incarnation": "0123456789abcdef",
            "status": MemberStatus(values["status"]),
            "lease_mode": LeaseMode(values["lease_mode"]),
            "offset_format": OffsetFormat(values["offset_format"]),
        }
    )


def as_update(partition_id, values, replaces):
    """Return today's ``CheckpointUpdate`` for an update in the file."""
    state, ranges = values.get("state"), values.get("completed", ())
    return CheckpointUpdate(
        **values
        | {
            "partition_id": partition_id,
            "replaces": replaces,
            "state": None if state is None else bytes.fromhex(state),
            "completed": tuple(SequenceRange(*ends) for ends in ranges),
        }
    )


def facts(checkpoint):
    """Return the fields of a checkpoint, without its version."""
    return {
        "offset": checkpoint.offset,
        "sequence_number": checkpoint.sequence_number,
        "writer": checkpoint.writer,
        "state": checkpoint.state,
        "state_sequence_number": checkpoint.state_sequence_number,
        "completed": checkpoint.completed,
        "delivery_count": checkpoint.delivery_count,
    }


def expected(values):
    """Return the fields that a checkpoint has after all its updates."""
    last = as_update(values["partition_id"], values["updates"][-1], None)
    states = [update.get("state") for update in values["updates"]]
    state = next((bytes.fromhex(state) for state in reversed(states) if state is not None), b"")
    number = values.get("state_sequence_number", last.sequence_number)
    return {
        "offset": last.offset,
        "sequence_number": last.sequence_number,
        "writer": last.writer,
        "state": state or None,
        "state_sequence_number": number if state else None,
        "completed": last.completed,
        "delivery_count": last.delivery_count,
    }


async def write_all(store):
    """Write every record, in the order of the values."""
    for values in VALUES["ownership"]:
        await store.claim_ownership(GROUP, [OwnershipClaim(expected_etag=None, **values)])
    for values in VALUES["members"]:
        await store.announce_member(GROUP, as_member(values))
    for values in VALUES["checkpoints"]:
        found = None
        for step in values["updates"]:
            update = as_update(values["partition_id"], step, found)
            found = (await store.update_checkpoint(GROUP, update)).checkpoint


async def check_all_is_read(store):
    """Assert that the store has every record, with the values that it was made from."""
    owners = (await store.list_ownership(GROUP)).ownerships
    members = (await store.list_members(GROUP)).members
    listed = await store.list_checkpoints(GROUP)
    whole = {
        found.partition_id: await store.read_checkpoint(GROUP, found.partition_id)
        for found in listed
    }

    assert {o.partition_id: o.owner_id for o in owners} == {
        values["partition_id"]: values["owner_id"] for values in VALUES["ownership"]
    }
    assert {facts_of_member(member) for member in members} == {
        facts_of_member(as_member(values)) for values in VALUES["members"]
    }
    assert {key: facts(found) for key, found in whole.items()} == {
        values["partition_id"]: expected(values) for values in VALUES["checkpoints"]
    }


def facts_of_member(member):
    """Return the fields of a member record, without its ETag."""
    return (
        *(member.owner_id, member.incarnation, member.status, member.hands_over, member.weight),
        *(member.deployment_id, member.lease_mode, member.offset_format, member.version),
    )
