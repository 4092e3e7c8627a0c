"""The body of a group record's blob: the bytes that are stored, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpointstores.blob._layout import (
    RecordKind,
    folder,
    frame_record,
    member_blob,
    record_blob,
    record_in,
    record_metadata,
    unframe_record,
)
from eventproc.errors import ConfigurationError, StoreCorruptError
from eventproc.models import RECORD_BYTES_MAX, ConsumerGroup, GroupRecord
from eventproc.testing._virtual_time import run_virtual
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

    with pytest.raises(
        StoreCorruptError, match=r"ns/hub/\$default/member/!records/schema is damaged"
    ):
        run_virtual(read())


@pytest.mark.parametrize("kind", [RecordKind.OWNERSHIP, RecordKind.CHECKPOINT])
@pytest.mark.parametrize("name", ["schema", "../ownership/0", "/", "ownership"])
def test_no_listing_of_an_azure_sdk_meets_a_group_record(kind, name):
    """An Azure SDK fails its whole listing at an unknown blob below its folders."""
    assert not record_blob(GROUP, name).startswith(folder(GROUP, kind))


@given(st.text(min_size=1), st.text(min_size=1))
def test_no_member_has_the_blob_of_a_group_record(name, owner_id):
    """Both are below one folder, so that one listing has them."""
    blob = record_blob(GROUP, name)

    assert blob.startswith(folder(GROUP, RecordKind.MEMBER))
    assert blob != member_blob(GROUP, owner_id)
    assert blob.count("/") == folder(GROUP, RecordKind.MEMBER).count("/") + 1


@given(st.text(min_size=1).filter(lambda name: name.strip()))
def test_the_name_of_a_group_record_is_restored_from_metadata(name):
    """That of the blob may be cut, so it is not read from there."""
    assert record_in(record_metadata(name, "0123")) == name


def test_a_record_that_no_store_can_keep_is_refused():
    """Without a name, or larger than the most that a read returns."""
    with pytest.raises(ConfigurationError, match="the name of a group record is empty"):
        GroupRecord(name="", content=b"")
    GroupRecord(name="large", content=bytes(RECORD_BYTES_MAX))
    with pytest.raises(ConfigurationError, match="'larger' has 4,194,305 bytes: the most is 4,1"):
        GroupRecord(name="larger", content=bytes(RECORD_BYTES_MAX + 1))
