"""Checkpoint blobs that another program wrote or moved, and legacy leases."""

from typing import Any

import pytest

from checkpointstores.blob._layout import RecordKind, folder, home
from eventproc.models import ALONE, NOT_BEGUN, Checkpoint, SequenceRange
from tests.unit.checkpointstores.blob.container_bench import (
    GROUP,
    MemoryBlobStore,
    MemoryContainer,
    result_of,
    stored,
)
from tests.unit.checkpointstores.updates import update_of

CHECKPOINT_BLOB = folder(home(GROUP), RecordKind.CHECKPOINT) + "0"


def test_checkpoints_without_a_usable_position_or_body_are_logged(caplog):
    """A body that another program wrote is ignored, and a body of this format is not logged."""
    at = {"offset": "1", "sequencenumber": "1"}

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        await stored(store, update_of(7, state=b"seven"))
        seen = [await store.read_checkpoint(GROUP, "0")]
        for metadata, body in (({"offset": ""}, b""), (at, b"{}"), (at, b"")):
            container.write(CHECKPOINT_BLOB, metadata, body)
            seen.append(await store.read_checkpoint(GROUP, "0"))
        return [found and (found.sequence_number, found.state) for found in seen]

    assert result_of(scenario) == [(7, b"seven"), (None, None), (1, None), (1, None)]
    lines = [vars(record) for record in caplog.records]
    assert [line["event"] for line in lines] == ["store_record_malformed"] * 2
    assert [line["reason"] for line in lines] == [
        "it names no position",
        "its body is not in eventproc's format, and is ignored",
    ]


@pytest.mark.parametrize(
    ("metadata", "completed"),
    [
        ({"offset": "900", "sequencenumber": "15"}, (SequenceRange(16, 20),)),
        ({"offset": "900"}, ()),
    ],
)
def test_a_checkpoint_that_an_azure_sdk_moved_keeps_the_ranges_above_it(metadata, completed):
    """The body is still that of the old position: its isolation belongs there."""
    done = (SequenceRange(9, 9), SequenceRange(12, 20))

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        await stored(store, update_of(7, state=b"s", completed=done, isolation=ALONE))
        container.write(CHECKPOINT_BLOB, metadata, container.blobs[CHECKPOINT_BLOB].body)
        moved = await store.read_checkpoint(GROUP, "0")
        reset = await stored(store, update_of(7, moved, is_reset=True))
        return moved, reset == await store.read_checkpoint(GROUP, "0")

    moved, is_reset_as_written = result_of(scenario)
    assert (moved.state, moved.state_sequence_number) == (b"s", 7)
    assert (moved.completed, moved.isolation) == (completed, NOT_BEGUN)
    assert is_reset_as_written


LEGACY = {"azure-webjobs/$Default/0": b'{"Offset": "70", "SequenceNumber": 7}'}


def test_legacy_leases_are_ignored_unless_they_are_asked_for():
    """Reading them costs a request for each partition."""

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        for name, body in LEGACY.items():
            container.write(name, {}, body)
        listed = await store.list_checkpoints(GROUP)
        return listed, await store.read_checkpoint(GROUP, "0"), container.requests

    assert result_of(scenario) == ([], None, ["list", "read"])


def test_checkpoints_without_a_position_are_not_listed_and_logged_once_for_each_version(caplog):
    """A listing is repeated in every cycle."""

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        listed: list[Checkpoint] = []
        for _ in range(2):
            container.write(CHECKPOINT_BLOB, {"offset": "", "sequencenumber": ""})
            for _ in range(2):
                listed += await store.list_checkpoints(GROUP)
        return listed

    assert result_of(scenario) == []
    lines = [vars(record) for record in caplog.records]
    assert [line["event"] for line in lines] == ["store_record_malformed"] * 2
    assert len({line["etag"] for line in lines}) == 2
