"""Files of fastavro and of Apache's library, in pieces of any size; files that are damaged."""

import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from io import BytesIO

import avro.datafile
import avro.io
import avro.schema
import pytest

from eventproc.models import REPLAYED_FROM, ReceivedEvent
from eventproc.sources.capture._avro import AvroFile, DamagedFileError
from eventproc.sources.capture._events import CapturedEvents
from tests.servers.capture import SCHEMA, file_of, record_of

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def event(number: int) -> ReceivedEvent:
    return ReceivedEvent(
        body=b"%d" % number,
        sequence_number=number,
        offset=str(number * 100),
        enqueued_time=AT,
        partition_key="key" if number % 3 else None,
        properties={"kind": "order", "count": number, "share": 0.5, "raw": b"\xff"},
    )


RECORDS = [record_of(event(number)) for number in range(200)]


def by_apache(codec: str) -> bytes:
    """Return a file as Apache's own library writes it."""
    out = BytesIO()
    schema = avro.schema.parse(json.dumps(SCHEMA))
    with avro.datafile.DataFileWriter(out, avro.io.DatumWriter(), schema, codec=codec) as writer:
        for record in RECORDS:
            writer.append(record)
        writer.flush()
        return out.getvalue()


def events(file: AvroFile, data: bytes) -> list[ReceivedEvent]:
    """Return the events that these bytes complete."""
    return [event for batch in file.feed(data) for event in batch]


def event_of(record: Mapping[str, object]) -> ReceivedEvent:
    batch = CapturedEvents.of([record])
    assert batch is not None
    return batch[0]


def read(data: bytes, *sizes: int) -> list[int]:
    """Return the numbers of the events of a file whose bytes come in pieces of these sizes."""
    file, at, found = AvroFile("a.avro", len(data)), 0, []
    for size in [*sizes, len(data) - sum(sizes)]:
        found += [event.sequence_number for event in events(file, data[at : at + size])]
        at += size
    return found


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("writer", ["fastavro", "apache"])
def test_events_are_complete_however_the_bytes_arrive(codec, writer):
    data = by_apache(codec) if writer == "apache" else file_of(RECORDS, codec=codec, block_bytes=99)
    cuts = random.Random(7)

    for _ in range(20):
        first, second = sorted(cuts.sample(range(len(data)), 2))
        assert read(data, first, second - first) == list(range(200))


def test_an_event_has_the_fields_that_it_has_in_the_hub():
    (found,) = events(AvroFile("a.avro", len(data := file_of(RECORDS[1:2]))), data)

    assert found.system_properties["x-opt-enqueued-time"] == round(AT.timestamp() * 1000)
    assert found == ReceivedEvent(
        body=b"1",
        sequence_number=1,
        offset="100",
        enqueued_time=AT,
        partition_key="key",
        properties={"kind": "order", "count": 1, "share": 0.5, "raw": b"\xff"},
        system_properties=found.system_properties,
    )


def test_a_replayed_event_says_so_and_hides_the_property():
    record = {**RECORDS[0], "Properties": {"eventproc_replayed_from": "letter", "a": "b"}}
    found = event_of(record)

    assert found.replayed_from == "letter"
    assert REPLAYED_FROM in found.system_properties
    assert found.properties == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8/31/2017 7:12:44 PM", datetime(2017, 8, 31, 19, 12, 44, tzinfo=UTC)),
        ("12/1/2017 12:00:01 AM", datetime(2017, 12, 1, 0, 0, 1, tzinfo=UTC)),
        ("2017-08-31T21:12:44+02:00", datetime(2017, 8, 31, 19, 12, 44, tzinfo=UTC)),
        ("2017-08-31T19:12:44.1230000Z", datetime(2017, 8, 31, 19, 12, 44, 123000, tzinfo=UTC)),
    ],
)
def test_without_an_annotation_the_time_is_read_from_its_text(text, expected):
    found = event_of({**RECORDS[0], "SystemProperties": {}, "EnqueuedTimeUtc": text})

    assert found.enqueued_time == expected


def test_a_null_of_another_writer_is_an_empty_map():
    record = RECORDS[1] | {"Properties": None, "SystemProperties": None}
    found = event_of(record | {"EnqueuedTimeUtc": "1/2/2026 3:04:05 AM"})

    assert (found.properties, found.system_properties, found.partition_key) == ({}, {}, None)
    assert found.enqueued_time == AT.replace(microsecond=0)


def test_a_file_without_events_has_none():
    data = file_of([])
    file = AvroFile("a.avro", len(data))

    assert events(file, data) == []
    assert file.is_empty


def marker_lost() -> bytes:
    """Return a file of several blocks, the first of which does not end with the marker."""
    data = file_of(RECORDS, block_bytes=999)
    at = data.index(data[-16:], data.index(data[-16:]) + 16)
    return data[:at] + bytes(16) + data[at + 16 :]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no content"),
        (b"PAR1" + bytes(600), "does not begin as Avro does"),
        (file_of(RECORDS)[:-30], "ends within a block"),
        (file_of([])[:-3], "its head"),
        ((data := file_of(RECORDS))[:-1] + bytes([data[-1] ^ 1]), "ends within a block"),
        (marker_lost(), "sync marker"),
        (file_of(RECORDS).replace(b"Offset", b"Onsets"), "records lack Offset"),
        (file_of(RECORDS).replace(b'"type": "record"', b'"type": "rekord"'), "schema"),
        (file_of(RECORDS, codec="deflate")[:-200] + bytes(184) + file_of([])[-16:], "damaged"),
    ],
    ids=[
        "nothing",
        "parquet",
        "cut in a block",
        "cut in the head",
        "last marker",
        "marker",
        "fields",
        "schema",
        "deflate",
    ],
)
def test_a_damaged_file_is_named_with_the_reason(data, why):
    with pytest.raises(DamagedFileError, match=rf"a\.avro is damaged.*{why}|{why}"):
        events(AvroFile("a.avro", len(data)), data)


def test_the_events_before_a_damage_come_first():
    data = file_of(RECORDS, block_bytes=999)[:-1]
    batches = AvroFile("a.avro", len(data)).feed(data)

    found = [event.sequence_number for event in next(batches)]
    with pytest.raises(DamagedFileError, match="within a block"):
        next(batches)
    assert found == list(range(len(found)))
    assert 150 < len(found) < 200


def test_a_block_that_claims_to_be_longer_than_it_is_ends_at_the_next_marker():
    head = file_of([])
    data = head + b"\x02\xfe\xff\xff\xff\x0f" + b"a" * 99 + head[-16:]

    with pytest.raises(DamagedFileError, match="damaged"):
        events(AvroFile("a.avro", 1_000_000_000), data + bytes(16 * 1024))
