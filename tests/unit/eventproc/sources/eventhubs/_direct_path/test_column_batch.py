"""Batches of columns: the same values as of events that are decoded one by one, for any bytes."""

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventproc.columns import COLUMNS, to_columns
from eventproc.emulator._amqp.values import Int, Long, Symbol, Timestamp, UByte, ULong
from eventproc.errors import SourceRejectedError
from eventproc.models import REPLAYED_FROM, REPLAYED_FROM_PROPERTY
from eventproc.sources._amqp.columns import EncodedMessages
from eventproc.sources.eventhubs._direct_path.column_batch import (
    ColumnBatch,
    ColumnBuffer,
    ColumnReader,
)
from eventproc.sources.eventhubs._direct_path.column_frames import ColumnFrameParser
from eventproc.sources.eventhubs._direct_path.frames import FrameParser
from eventproc.sources.eventhubs._direct_path.lazy_event import EventReader
from tests.unit.eventproc.sources.eventhubs._direct_path.test_frames import (
    CHANNEL,
    HANDLE,
    Transfer,
)
from tests.unit.eventproc.sources.eventhubs._direct_path.test_lazy_event import messages
from tests.unit.eventproc.sources.eventhubs.messages import message, position, section

NAMES = tuple(COLUMNS)


def batch_of(payloads: Sequence[bytes], reader: ColumnReader | None = None) -> ColumnBatch:
    return (reader or ColumnReader()).read([EncodedMessages.of(payloads)])


@st.composite
def similar_messages(draw: st.DrawFn) -> list[bytes]:
    """Draw a few messages of any form, each of them several times, in any order."""
    few = draw(st.lists(messages(), min_size=1, max_size=4))
    return draw(st.lists(st.sampled_from(few), max_size=12))


def test_a_column_has_the_values_of_the_events():
    """An example to read: two forms of messages in turn."""
    keyed = [
        message(number, b"k" * number, x_opt_partition_key=f"key {number}") for number in (1, 3)
    ]
    plain = [message(number, b"p", x_opt_publisher="me") for number in (2, 4)]
    columns = batch_of([keyed[0], plain[0], keyed[1], plain[1]]).columns(NAMES, "7")

    assert columns.column("sequenceNumber").to_pylist() == [1, 2, 3, 4]
    assert columns.column("offset").to_pylist() == ["300", "600", "900", "1200"]
    assert columns.column("body").to_pylist() == [b"k", b"p", b"kkk", b"p"]
    assert columns.column("partitionKey").to_pylist() == ["key 1", None, "key 3", None]
    assert columns.column("publisher").to_pylist() == [None, "me", None, "me"]
    assert columns.column("partition").to_pylist() == ["7"] * 4


@given(similar_messages(), st.data())
def test_columns_equal_those_of_events(payloads, data):
    """All of them, and those of any slice; also with patterns that an earlier call learned."""
    expected = EventReader().read(payloads)
    reader = ColumnReader()
    batch = batch_of(payloads, reader)
    for _ in range(2):
        assert list(batch) == expected
        assert batch.columns(NAMES, "0").equals(to_columns(expected, NAMES, "0"))
        assert batch.body_byte_count == sum(len(event.body) for event in expected)

        batch = batch_of(payloads, reader)

    edges = st.integers(0, len(payloads))
    start, stop = sorted((data.draw(edges), data.draw(edges)))
    part, expected = batch[start:stop], expected[start:stop]

    assert len(part) == len(expected)
    assert [part[index] for index in range(len(part))] == expected
    assert part.columns(NAMES, "0").equals(to_columns(expected, NAMES, "0"))
    assert part.body_byte_count == sum(len(event.body) for event in expected)


def test_messages_of_one_form_are_decoded_together(monkeypatch):
    """Texts of any length, and none of the events becomes an object."""
    batch = batch_of(
        [message(n, b"b" * n, x_opt_partition_key="k" * (n % 7)) for n in range(1, 200)]
    )
    monkeypatch.setattr(EventReader, "read", None)

    assert batch.columns(NAMES, "0").num_rows == 199


@given(similar_messages(), st.lists(st.integers(0, 9000), max_size=4), st.data())
def test_columns_equal_those_of_events_from_frames_to_values(payloads, cuts, data):
    """Events in one frame and in several, wherever the received bytes are cut."""
    frames = []
    for payload in payloads:
        edges = sorted(data.draw(st.lists(st.integers(0, len(payload)), max_size=2)))
        parts = [payload[a:b] for a, b in pairwise([0, *edges, len(payload)])]
        frames += [Transfer(part, more=b"\x41").encoded() for part in parts[:-1]]
        frames.append(Transfer(parts[-1]).encoded())
    stream = b"".join(frames)
    expected = EventReader().read(FrameParser(CHANNEL, HANDLE).parse(stream).payloads)
    parser = ColumnFrameParser(FrameParser(CHANNEL, HANDLE))
    buffer, left = ColumnBuffer(), b""
    edges = sorted(cut % (len(stream) + 1) for cut in cuts)
    for begin, end in pairwise([0, *edges, len(stream)]):
        left += stream[begin:end]
        found = parser.parse(left)
        left = left[found.used :]
        buffer.add(found.payloads)
    first = data.draw(st.integers(0, len(payloads)))
    tables = []
    for part in (payloads[:first], payloads[first:]):
        events, *taken = buffer.take(len(part))
        tables.append(to_columns(events, NAMES, "0"))

        assert taken == [len(part), sum(map(len, part))]

    assert (left, len(buffer)) == (b"", 0)
    assert pa.Table.from_batches(tables).equals(
        pa.Table.from_batches([to_columns(expected, NAMES, "0")])
    )


def outcome(read: object) -> object:
    assert callable(read)
    try:
        return read()
    except SourceRejectedError:
        return "refused"


@given(similar_messages(), st.data())
@example([message(1), message(2)], None)
def test_damaged_messages_are_read_as_events_are(payloads, data):
    """The same values, or the same error: bytes are changed, or cut off at the end."""
    damaged = list(payloads)
    for index in range(len(payloads) if data else 0):
        raw = bytearray(payloads[index])
        if data.draw(st.booleans()):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        if data.draw(st.integers(0, 5)) == 0:
            del raw[data.draw(st.integers(0, len(raw))) :]
        damaged[index] = bytes(raw)
    compare(damaged)


def test_any_byte_of_a_message_may_be_damaged():
    """One among three of the same form: sizes, counts, names and constructors included."""
    payloads = [
        position(number, x_opt_partition_key="key", x_opt_own="own")
        + section(0x73, ["id", None, "to"])
        + section(0x74, {"text": "a", "number": Int(number)})
        + section(0x75, b"b" * 300)
        for number in range(3)
    ]
    body_at = payloads[1].index(b"b" * 300)
    cases = [
        payloads[1][:at] + bytes([value]) + payloads[1][at + 1 :]
        for at in range(body_at)
        for value in {0, 255, payloads[1][at] ^ 1, (payloads[1][at] + 1) % 256}
    ]
    for damaged in [*cases, payloads[1] + b"\0", payloads[1][:-1], payloads[1] * 2]:
        compare([payloads[0], damaged, payloads[2]])


def compare(payloads: Sequence[bytes]) -> None:
    """Check that each column is that of the events, or refused as those are."""
    events = outcome(lambda: EventReader().read(payloads))
    batch = outcome(lambda: batch_of(payloads))
    if events == "refused" or batch == "refused":
        assert events == batch
        return
    for name in NAMES:
        wanted = outcome(lambda name=name: to_columns(events, (name,), "0"))  # type: ignore[arg-type]
        found = outcome(lambda name=name: to_columns(batch, (name,), "0"))  # type: ignore[arg-type]
        # The publisher alone does not need the AMQP properties, which an event decodes with it.
        if not (name == "publisher" and wanted == "refused"):
            assert found == wanted


JSON_VALUES = {
    "text": "plain",
    "quote": 'a "quoted" text',
    "backslash": r"C:\temp",
    "line": "one\nanother",
    "bytes": b"\xff\x00",
    "small": 1,
    "int": Int(-5),
    "long": Long(2**40),
    "ulong": ULong(2**64 - 1),
    "ubyte": UByte(200),
    "time": Timestamp(1_795_205_646_471),
    "true": True,
    "none": None,
    "float": 0.25,
    "list": ["a", 1],
}


@pytest.mark.parametrize("name", JSON_VALUES)
def test_a_property_is_written_as_its_json(name):
    """Whether its values are converted together or one by one."""
    entries = {name: JSON_VALUES[name], "other": "x"}
    payloads = [
        position(number) + section(0x74, entries) + section(0x75, b"") for number in range(3)
    ]
    expected = to_columns(EventReader().read(payloads), NAMES, "0")

    assert batch_of(payloads).columns(NAMES, "0").equals(expected)


@pytest.mark.parametrize("has_others", [False, True])
def test_where_a_replayed_event_came_from_is_no_property_of_its_publisher(has_others):
    """It is a system property, as of the event: also of one among others of the same form."""
    own = {"kind": "order"}
    replayed = {**own, REPLAYED_FROM_PROPERTY: "ns/hub/g/0/7"}
    payloads = [
        position(number) + section(0x74, entries) + section(0x75, b"x")
        for number, entries in enumerate([own, replayed, own] if has_others else [replayed] * 2)
    ]
    batch = batch_of(payloads)
    properties = batch.columns(["properties"], "0").column(0).to_pylist()
    system = batch.columns(["systemProperties"], "0").column(0).to_pylist()

    assert properties == [[("kind", '"order"')]] * len(payloads)
    assert dict(system[1])[REPLAYED_FROM] == '"ns/hub/g/0/7"'
    assert batch.columns(NAMES, "0").equals(to_columns(EventReader().read(payloads), NAMES, "0"))


def test_an_event_without_an_offset_is_refused():
    """As when it is read as an object: it could not be stored in a checkpoint."""
    nameless = section(
        0x72,
        {
            Symbol("x-opt-sequence-number"): Long(2),
            Symbol("x-opt-offset"): "",
            Symbol("x-opt-enqueued-time"): Timestamp(5),
        },
    ) + section(0x75, b"")
    with pytest.raises(SourceRejectedError, match="not an event hub"):
        batch_of([message(1), nameless])


def test_a_time_that_no_date_has_is_an_error_of_its_column_only():
    """The other columns can be read."""
    late = section(
        0x72,
        {
            Symbol("x-opt-sequence-number"): Long(2),
            Symbol("x-opt-offset"): "9",
            Symbol("x-opt-enqueued-time"): Timestamp(2**62),
        },
    ) + section(0x75, b"")
    batch = batch_of([late, late])

    assert batch.columns(["offset"], "0").column(0).to_pylist() == ["9", "9"]
    with pytest.raises(SourceRejectedError):
        batch.columns(["enqueuedTime"], "0")


def test_parts_are_one_batch():
    """Also parts of which only the middle is left, and empty ones."""
    first = EncodedMessages.of([message(number) for number in range(6)])
    parts = [first[2:4], first[:0], EncodedMessages.of([]), EncodedMessages.of([message(9)])]
    batch = ColumnReader().read(parts)

    assert batch.columns(["sequenceNumber"], "0").column(0).to_pylist() == [2, 3, 9]


def test_a_batch_without_events_has_its_columns():
    """So a caller needs no special case."""
    columns = batch_of([]).columns(NAMES, "0")

    assert columns.num_rows == 0
    assert columns.schema.names == list(NAMES)


def test_a_slice_has_no_step():
    """Columns of every other event are a matter of Arrow's ``take``."""
    with pytest.raises(ValueError, match="step"):
        batch_of([message(1), message(2)])[::2]
