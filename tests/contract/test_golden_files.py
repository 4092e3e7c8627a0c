"""Stored formats of files, dead letters, offsets and writers' names: read, and written again.

From the tag 0.1.0 on the files in ``golden`` are frozen, as those of ``test_golden_stores.py``.
"""

import json

import pytest

from eventproc._command.group.file import ExportedCheckpoint, ExportedGroup, as_text, read_file
from eventproc._core.delivery.checkpoints import operators_writer, pump_owner, pumps_writer
from eventproc._core.delivery.offset_format import offset_format_of
from eventproc.dead_letters.blob import BlobDeadLetterSink
from eventproc.models import DeadLetter, OffsetFormat, ReceivedEvent
from eventproc.sources.eventhubs import EventHubDeadLetterSink
from spark_integration._sink.records import parse_writer
from spark_integration._source import planning as offsets
from tests.contract.golden_records import GOLDEN, GROUP, NOW, TASK, golden_text

# --- writers -------------------------------------------------------------------------------------


def test_the_writer_name_of_a_pump_is_written_again_and_parsed():
    """A new owner parses it to find out whose checkpoint it adopts."""
    writer = pumps_writer("host-1", "0a1b2c3d", 9)

    assert writer == "host-1/0a1b2c3d/9"
    assert pump_owner(writer) == "host-1"


def test_the_writer_name_of_an_operator_is_written_again():
    """A running pump recognises by it that an operator moved its checkpoint."""
    assert operators_writer("0a1b") == "operator//0a1b"


def test_a_kafka_offset_is_recognised_by_its_prefix():
    """``kafka:`` tells a group over Kafka from one over AMQP."""
    assert offset_format_of("kafka:4711") is OffsetFormat.KAFKA


# --- Spark ---------------------------------------------------------------------------------------


def test_a_golden_spark_offset_is_read_and_written_again():
    """The JSON text in a query's ``checkpointLocation`` is the same, because Spark compares
    texts."""
    text = json.loads(golden_text("spark.json"))["offset"]
    following = {"0": 43, "1": 0, "10": 4712}

    assert offsets.from_json("orders", json.loads(text)) == following
    assert json.dumps(offsets.to_json("orders", following)) == text


def test_the_writer_name_of_a_spark_task_is_written_again_and_parsed():
    """A batch that one version began is recognised as a replay by the other."""
    golden = json.loads(golden_text("spark.json"))

    assert (TASK.writer, TASK.owner_id) == (golden["writer"], golden["owner_id"])
    assert parse_writer(golden["writer"]) == TASK


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
    golden = json.loads(golden_text("dead_letter_places.json"))
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
    assert as_text(contents) == golden_text("export.json")
