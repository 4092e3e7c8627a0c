"""Stored formats stay: what commit ``dbcb3e1`` wrote is read, and written again byte for byte.

``golden/values.json`` has the values, and the other files in ``golden`` are what that commit wrote
for them (``golden/make_at_dbcb3e1.txt``). ``docs/wire-format.md`` describes the formats. A change
that fails here breaks groups with processors of two versions, and existing files and containers:
it needs a new schema version, and code that reads the old one.
"""

import json
import sqlite3
from contextlib import closing
from itertools import count

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from checkpointstores.sqlite import records as sqlite_records
from eventproc.cli.group.file import ExportedCheckpoint, ExportedGroup, as_text, read_file
from eventproc.core.checkpoint_rules import (
    initial_checkpoint,
    is_moved_by_operator,
    operators_writer,
    pump_owner,
    pumps_writer,
)
from eventproc.core.deliveries import ALONE, IN_PART, deliveries_of, first_isolation
from eventproc.core.offset_format import offset_format_of
from eventproc.dead_letters.blob import BlobDeadLetterSink
from eventproc.models import (
    DeadLetter,
    LeaseMode,
    MemberStatus,
    OffsetFormat,
    ReceivedEvent,
)
from eventproc.sources.eventhubs import EventHubDeadLetterSink
from eventproc.statistics import DeliveryCounters
from spark_integration.sink.records import (
    PartitionReport,
    TaskId,
    begin_update,
    commit_update,
    parse_writer,
)
from spark_integration.source import offsets
from tests.contract.golden_values import (
    GOLDEN,
    GROUP,
    NOW,
    NOW_US,
    VALUES,
    BlobStore,
    MemoryContainer,
    StoppedClock,
    as_update,
    check_all_is_read,
    write_all,
)

SQLITE_DIFFERENCES = {
    "user_version": "4 became 5 with the clock (decision 0103), 6 with placements, 7 with epochs",
    "ownership_epoch": "a new table; a record without an epoch has no row",
    "member_load": "a new table; a member without a load has no row",
    "group_record": "a new table; it has no rows",
    "clock": "the table of that clock and its one row",
    "member_placement": "a new table; a member with the defaults has no row",
}
"""All differences to what that commit wrote: ``test_a_new_sqlite_file_has_only_...`` checks it."""


# --- blobs ---------------------------------------------------------------------------------------


async def test_golden_blobs_are_read():
    """Ownership, member and checkpoint blobs are read with the values that they were written
    from."""
    blobs = json.loads((GOLDEN / "blobs.json").read_text("utf-8"))

    await check_all_is_read(BlobStore(MemoryContainer(blobs)))


async def test_golden_blobs_are_written_again():
    """Names, metadata and bodies of all blobs are the same as those of ``dbcb3e1``."""
    container = MemoryContainer()
    await write_all(BlobStore(container))

    assert [
        {"name": blob.name, "metadata": blob.metadata, "body": blob.body.hex()}
        for blob in container.blobs.values()
    ] == json.loads((GOLDEN / "blobs.json").read_text("utf-8"))


async def test_unknown_words_in_a_member_blob_read_as_the_default():
    """A value that this version does not know, in any field of a member record, reads as the
    default."""
    blobs = json.loads((GOLDEN / "blobs.json").read_text("utf-8"))
    [blob] = [blob for blob in blobs if blob["name"].endswith("/session-leaving")]
    blob["metadata"] |= {"status": "x", "leasemode": "x", "numbering": "x", "weight": "x", "x": "x"}
    [member] = (await BlobStore(MemoryContainer([blob])).list_members(GROUP)).members

    assert (member.status, member.lease_mode, member.offset_format, member.weight) == (
        *(MemberStatus.ACTIVE, LeaseMode.PARTITION, OffsetFormat.AMQP, 1.0),
    )


@pytest.mark.parametrize(("found", "next_mark"), [(1, IN_PART), (2, ALONE), (3, ALONE + 1)])
def test_a_delivery_count_written_by_dbcb3e1_does_not_blame_an_event_early(found, next_mark):
    """The count of ``dbcb3e1`` reads as at most as many deliveries, and only an event that was
    delivered alone by both versions is blamed.
    """
    assert deliveries_of(found) <= found
    assert first_isolation(found, last_suspect=100).mark == next_mark


def test_every_word_that_can_be_stored_is_in_the_golden_records():
    """Every value of the stored enumerations occurs, but for the default, which the values leave
    out, and the offset format of a source that is newer than the records."""
    stored = {word for values in VALUES["members"] for word in values.values()}
    known = {word.value for kind in (MemberStatus, LeaseMode, OffsetFormat) for word in kind}

    assert known - stored == {OffsetFormat.AMQP.value, OffsetFormat.QUEUE.value}


# --- SQLite --------------------------------------------------------------------------------------


def load(path):
    """Create a file from the dump."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript((GOLDEN / "group.sql").read_text("utf-8"))


def contents(path):
    """Return the file's application id and version, and for each table its schema and rows."""
    with closing(sqlite3.connect(path)) as db:
        found = {
            name: db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        }
        for name, statement in db.execute("SELECT name, sql FROM sqlite_schema WHERE sql NOTNULL"):
            found[name] = (statement, sorted(db.execute(f"SELECT * FROM {name}"), key=repr))
        return found


async def test_a_golden_sqlite_file_is_upgraded_and_read(tmp_path):
    """Opening a file of ``dbcb3e1`` upgrades it, and every record has the values it was written
    from."""
    load(tmp_path / "group.db")

    async with SqliteCheckpointStore(tmp_path / "group.db", host_clock=StoppedClock()) as store:
        await check_all_is_read(store)


async def test_a_new_sqlite_file_has_only_the_listed_differences(tmp_path, monkeypatch):
    """All other tables and rows are equal, and an upgraded golden file equals a new one."""
    numbers = count(1)
    monkeypatch.setattr(sqlite_records, "_new_etag", lambda: f"{next(numbers):016x}")
    load(tmp_path / "golden.db")
    golden = contents(tmp_path / "golden.db")
    async with SqliteCheckpointStore(tmp_path / "new.db", host_clock=StoppedClock()) as store:
        await write_all(store)
    async with SqliteCheckpointStore(tmp_path / "golden.db", host_clock=StoppedClock()):
        pass
    new, upgraded = contents(tmp_path / "new.db"), contents(tmp_path / "golden.db")

    assert {key for key in new if new[key] != golden.get(key)} == SQLITE_DIFFERENCES.keys()
    assert (golden["user_version"], new["user_version"]) == (4, 7)
    assert new["clock"][1] == [(0, "boot", NOW_US, NOW_US)]
    assert upgraded == new


# --- writers -------------------------------------------------------------------------------------


def updates_by(writer_kind):
    """Return the last update of each checkpoint that ``written_by`` attributes to a writer."""
    return [
        as_update(values["partition_id"], values["updates"][-1], None)
        for values in VALUES["checkpoints"]
        if values.get("written_by") == writer_kind
    ]


def test_the_writer_name_of_a_pump_is_written_again_and_parsed():
    """A new owner parses it to find out whose checkpoint it adopts."""
    writer = pumps_writer("host-1", "0a1b2c3d", 9)

    assert [initial_checkpoint("8", writer)] == updates_by("first_mark")
    assert pump_owner(writer) == "host-1"


async def test_the_writer_name_of_an_operator_is_written_again_and_recognised():
    """A running pump recognises by it that an operator moved its checkpoint."""
    [update] = updates_by("operator")
    blobs = json.loads((GOLDEN / "blobs.json").read_text("utf-8"))
    found = await BlobStore(MemoryContainer(blobs)).read_checkpoint(GROUP, "9")

    assert operators_writer("0a1b") == update.writer
    assert found is not None
    assert is_moved_by_operator(found)


def test_a_kafka_offset_is_recognised_by_its_prefix():
    """``kafka:`` tells a group over Kafka from one over AMQP."""
    assert offset_format_of("kafka:4711") is OffsetFormat.KAFKA


# --- Spark ---------------------------------------------------------------------------------------


def test_a_golden_spark_offset_is_read_and_written_again():
    """The JSON text in a query's ``checkpointLocation`` is the same, because Spark compares
    texts."""
    text = json.loads((GOLDEN / "spark.json").read_text("utf-8"))["offset"]
    following = {"0": 43, "1": 0, "10": 4712}

    assert offsets.from_json("orders", json.loads(text)) == following
    assert json.dumps(offsets.to_json("orders", following)) == text


def test_checkpoints_of_the_spark_sink_are_written_again_and_parsed():
    """A batch that one version began is recognised as a replay by the other."""
    task = TaskId(**VALUES["spark_task"])
    golden = json.loads((GOLDEN / "spark.json").read_text("utf-8"))
    report = PartitionReport(
        partition_id="11",
        replaces=None,
        offset="4200",
        sequence_number=42,
        state=b"\x00\xff{}",
        counters=DeliveryCounters(),
    )

    assert (task.writer, task.owner_id) == (golden["writer"], golden["owner_id"])
    assert parse_writer(golden["writer"]) == task
    assert [begin_update("10", None, 0, task), commit_update(task, report)] == updates_by("spark")


# --- files for people and tables -----------------------------------------------------------------


def a_dead_letter(body):
    """Return the dead letter that was stored."""
    return DeadLetter(
        event=ReceivedEvent(
            body=body,
            sequence_number=42,
            offset="4200",
            enqueued_time=NOW,
            partition_key="customer-7",
            properties={"kind": "order", b"raw": b"\xff", "tries": 2},  # type: ignore[dict-item]
            system_properties={"x-opt-enqueued-time": NOW},
            content_type="application/json",
        ),
        group=GROUP,
        partition_id="0",
        owner_id="host-1",
        attempt_count=3,
        error_type="ValueError",
        error_message="no such customer",
        traceback="Traceback ...",
        given_up_at=NOW,
    )


@pytest.mark.parametrize(
    ("name", "body"),
    [("dead_letter.json", b'{"customer": 7}'), ("dead_letter_base64.json", b"\xff\x00")],
)
def test_a_golden_dead_letter_is_written_again(name, body):
    """The JSON of a dead letter, with a body of text or of bytes, is the same byte for byte."""
    assert a_dead_letter(body).to_json() == (GOLDEN / name).read_bytes()


class RecordingSink(EventHubDeadLetterSink):
    """Keeps the properties of the event that it would send."""

    def _connected(self):
        return self

    async def send(self, event, properties):
        self.properties = properties
        return True


async def test_the_names_and_properties_of_dead_letters_are_the_same():
    """The name of the blob, and the properties of the event in a dead-letter hub."""
    golden = json.loads((GOLDEN / "dead_letter_places.json").read_text("utf-8"))
    blob = BlobDeadLetterSink("https://contoso.blob.core.windows.net", "letters")
    hub = RecordingSink.from_connection_string(
        "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=b",
        eventhub_name="letters",
    )
    await hub.store(a_dead_letter(b"x"))

    assert blob._name(a_dead_letter(b"x")) == golden["blob"]
    assert hub.properties == golden["properties"]


def test_a_golden_export_is_read_and_written_again():
    """A file of ``eventproc checkpoints export`` can be imported by any later version."""
    contents = ExportedGroup(
        format="eventproc-checkpoints",
        version=1,
        namespace=GROUP.fully_qualified_namespace,
        eventhub=GROUP.eventhub_name,
        consumer_group=GROUP.name,
        exported_at=NOW,
        checkpoints=[
            ExportedCheckpoint(
                partition_id="0",
                offset="4200",
                sequence_number=42,
                state=b"\x00\xff{}",
                state_sequence_number=42,
                completed=[(44, 46), (50, 50)],
                last_modified=NOW,
            ),
            ExportedCheckpoint(partition_id="1", offset="-1", sequence_number=-1),
        ],
    )

    assert read_file(GOLDEN / "export.json").contents == contents
    assert as_text(contents) == (GOLDEN / "export.json").read_text("utf-8")
