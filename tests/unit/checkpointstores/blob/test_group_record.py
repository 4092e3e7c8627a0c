"""The body of a group record's blob: the bytes that are stored, and what is refused."""

import pytest

from checkpointstores.blob.azure_layout import RecordKind, folder, record_blob
from checkpointstores.blob.group_record import frame_record, unframe_record
from eventproc.errors import ConfigurationError, StoreCorruptError
from eventproc.models import RECORD_BYTES_MAX, ConsumerGroup, GroupRecord
from eventproc.testing.virtual_time import run_virtual
from tests.unit.checkpointstores.blob.container_bench import MemoryBlobStore, MemoryContainer

GROUP = ConsumerGroup(fully_qualified_namespace="NS", eventhub_name="Hub", name="$Default")
BODY = b"evprecrd\x00\x01" + bytes.fromhex("c681ff421fbd7af6dc373a7ced20fbeb") + b"content"


def test_the_bytes_of_a_body_stay():
    """Magic, version, digest, content: frozen, as every stored format."""
    assert frame_record(b"content") == BODY
    assert unframe_record(BODY, "blob") == b"content"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "is damaged"),
        (b"evprecrd", "is damaged"),
        (BODY[:-1], "is damaged"),
        (BODY + b"!", "is damaged"),
        (b"x" * 40, "is damaged"),
        (BODY[:9] + b"\x02" + BODY[10:], "has version 2, written by a later eventproc"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(body, why):
    """A reader gets an error with the blob's name, never a part of the content."""
    with pytest.raises(StoreCorruptError, match=rf"the record some/blob {why}"):
        unframe_record(body, "some/blob")


def test_a_damaged_record_is_refused_by_the_store():
    """As ``read_record`` promises."""

    async def read() -> None:
        container = MemoryContainer()
        container.write(record_blob(GROUP, "schema"), {}, b"damaged")
        async with MemoryBlobStore(container) as store:
            await store.read_record(GROUP, "schema")

    with pytest.raises(StoreCorruptError, match=r"ns/hub/\$default/record/schema is damaged"):
        run_virtual(read())


@pytest.mark.parametrize("kind", [RecordKind.OWNERSHIP, RecordKind.CHECKPOINT, RecordKind.MEMBER])
@pytest.mark.parametrize("name", ["schema", "../ownership/0", "/", "ownership"])
def test_no_listing_of_other_records_meets_a_group_record(kind, name):
    """An Azure SDK fails its whole listing at an unknown blob below its folders."""
    assert not record_blob(GROUP, name).startswith(folder(GROUP, kind))
    assert record_blob(GROUP, name).count("/") == folder(GROUP, kind).count("/")


def test_a_record_that_no_store_can_keep_is_refused():
    """Without a name, or larger than the most that a read returns."""
    with pytest.raises(ConfigurationError, match="the name of a group record is empty"):
        GroupRecord(name="", content=b"")
    GroupRecord(name="large", content=bytes(RECORD_BYTES_MAX))
    with pytest.raises(ConfigurationError, match="'larger' has 4,194,305 bytes: the most is 4,1"):
        GroupRecord(name="larger", content=bytes(RECORD_BYTES_MAX + 1))
