"""Files of fastavro and of Apache's library, in pieces of any size; files that are damaged."""

import json
import random
from datetime import UTC, datetime
from io import BytesIO

import avro.datafile
import avro.io
import avro.schema
import pytest

from eventproc.models import REPLAYED_FROM, ReceivedEvent
from eventproc.sources.capture._avro import AvroFile, DamagedFileError
from eventproc.sources.capture._events import event_of, time_of
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


def read(data: bytes, *sizes: int) -> list[int]:
    """Return the numbers of the events of a file whose bytes come in pieces of these sizes."""
    file, at, found = AvroFile("a.avro", len(data)), 0, []
    for size in [*sizes, len(data) - sum(sizes)]:
        found += [event_of(each).sequence_number for each in file.feed(data[at : at + size])]
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
    (record,) = AvroFile("a.avro", len(data := file_of(RECORDS[1:2]))).feed(data)
    found = event_of(record)

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
        ("2017-08-31T19:12:44.1230000Z", datetime(2017, 8, 31, 19, 12, 44, 123000, tzinfo=UTC)),
    ],
)
def test_without_an_annotation_the_time_is_read_from_its_text(text, expected):
    assert time_of({**RECORDS[0], "SystemProperties": {}, "EnqueuedTimeUtc": text}) == expected


def test_a_file_without_events_has_none():
    data = file_of([])
    file = AvroFile("a.avro", len(data))

    assert list(file.feed(data)) == []
    assert file.is_empty


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no content"),
        (b"PAR1" + bytes(600), "does not begin as Avro does"),
        (file_of(RECORDS)[:-30], "longer than the file"),
        (file_of([])[:-3], "ends too early"),
        (file_of(RECORDS)[:-1] + b"?", "does not end where it says"),
        (file_of(RECORDS).replace(b"Offset", b"Onsets"), "records lack Offset"),
        (file_of(RECORDS).replace(b'"type": "record"', b'"type": "rekord"'), "schema"),
        (file_of(RECORDS, codec="deflate")[:-200] + bytes(184) + file_of([])[-16:], "damaged"),
    ],
    ids=[
        "nothing",
        "parquet",
        "cut in a block",
        "cut in the head",
        "marker",
        "fields",
        "schema",
        "deflate",
    ],
)
def test_a_damaged_file_is_named_with_the_reason(data, why):
    with pytest.raises(DamagedFileError, match=rf"a\.avro is damaged.*{why}|{why}"):
        list(AvroFile("a.avro", len(data)).feed(data))


def test_a_block_that_claims_to_be_longer_than_the_file_is_not_waited_for():
    data = file_of(RECORDS)
    file = AvroFile("a.avro", 1000)

    with pytest.raises(DamagedFileError, match="longer than the file"):
        file.feed(data[:900])
