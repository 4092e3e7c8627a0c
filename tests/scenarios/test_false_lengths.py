"""Messages whose lengths and counts are false, in one buffer with those of other publishers.

The columns must have what the events have, or be refused with the same error. An event is decoded
from its own bytes only, so columns that equal events have no bytes of another message.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest

from eventproc._base.amqp import skip
from eventproc.columns import COLUMNS, to_columns
from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.values import (
    Array,
    Described,
    Float,
    Int,
    Symbol,
    Timestamp,
    ULong,
    Value,
)
from eventproc.errors import SourceRejectedError
from eventproc.models import ReceivedEvent
from eventproc.sources._amqp.columns import EncodedMessages
from eventproc.sources.eventhubs._direct_path.column_batch import ColumnBatch, ColumnReader
from eventproc.sources.eventhubs._direct_path.lazy_event import EventReader
from tests.unit.eventproc.sources.eventhubs.messages import message, position, section

# The publisher alone does not need the AMQP properties, which an event decodes with it.
NAMES = tuple(name for name in COLUMNS if name != "publisher")
SECRET = b"SECRET-OF-ANOTHER-PUBLISHER"
BATCH = 200


def value(random: Random, depth: int = 0) -> Value:
    """Draw a value; a third of them hold others."""
    text = "v" * random.choice((0, 3, 40, 300))
    few = range(random.randrange(4))
    simple: list[Callable[[], Value]] = [
        lambda: text,
        text.encode,
        lambda: Symbol(text),
        lambda: Int(random.randrange(9)),
        lambda: random.choice((None, True, 0.5, Float(0.5), ULong(0), Timestamp(5))),
        lambda: Array(0x71, [Int(each) for each in few]),
        lambda: Array(0xA1, ["x" * each for each in few]),
    ]
    holding: list[Callable[[], Value]] = [
        lambda: {f"k{each}": value(random, depth + 1) for each in few},
        lambda: [value(random, depth + 1) for _ in few],
        lambda: Described(ULong(7), value(random, depth + 1)),
    ]
    return random.choice(simple + holding if depth < 3 else simple)()


def any_message(random: Random, number: int) -> bytes:
    parts = [position(number, **({"x_opt_own": "own"} if random.random() < 0.3 else {}))]
    if random.random() < 0.5:
        parts.append(section(0x73, [value(random) for _ in range(random.randrange(6))]))
    if random.random() < 0.9:
        entries = {f"p{each}": value(random) for each in range(random.randrange(4))}
        parts.append(section(0x74, entries))
    parts.append(section(0x75, b"b" * random.choice((0, 2, 300))))
    return b"".join(parts)


def lengths_in(raw: bytes, at: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Find where each length and each count is, at every depth, and how many bytes it has."""
    end = len(raw) if end is None else end
    while at < end:
        constructor = raw[at]
        if constructor == 0:
            at = skip(raw, at + 1)
            continue
        after = skip(raw, at)
        kind = constructor >> 4
        width = {0xA: 1, 0xC: 1, 0xE: 1, 0xB: 4, 0xD: 4, 0xF: 4}.get(kind, 0)
        if width:
            yield at + 1, width
        if kind >= 0xC:
            yield at + 1 + width, width
        if kind in {0xC, 0xD}:
            yield from lengths_in(raw, at + 1 + 2 * width, after)
        if constructor in {0xE0, 0xF0} and raw[at + 1 + 2 * width] == 0xA1:
            item = at + 2 + 2 * width
            while item < after:
                yield item, 1
                item += 1 + raw[item]
        at = after


def damaged(random: Random, raw: bytes, places: Sequence[tuple[int, int]]) -> bytes:
    """Change one to three lengths or counts, and at times a byte or the end."""
    changed = bytearray(raw)
    for at, width in random.sample(places, min(len(places), random.choice((1, 1, 1, 2, 3)))):
        found = int.from_bytes(changed[at : at + width])
        new = random.choice(
            (found + 1, found - 1, found + 2, 0, 1, 255, len(raw) - at - width, 2**31, 2**32 - 1)
            if random.random() < 0.7
            else range(256)
        )
        changed[at : at + width] = (new % 256**width).to_bytes(width)
    if random.random() < 0.05:
        changed[random.randrange(len(changed))] = random.randrange(256)
    if random.random() < 0.05:
        del changed[random.randrange(len(changed)) :]
    return bytes(changed)


def outcome(read: Callable[..., object], *given: object) -> object:
    try:
        return read(*given)
    except SourceRejectedError as error:
        return str(error)


def batch_of(payloads: Sequence[bytes]) -> ColumnBatch:
    return ColumnReader().read([EncodedMessages.of(payloads)])


def compare(payloads: Sequence[bytes]) -> None:
    """Compare the columns of messages in one buffer with those of their events."""
    other = message(99, SECRET * 40)
    reader = EventReader()
    (other_event,) = reader.read([other])
    readable: list[bytes] = []
    events: list[ReceivedEvent] = []
    for payload in payloads:
        found = outcome(reader.read, [payload])
        if isinstance(found, list):
            readable += [payload, other]
            events += [*found, other_event]
        else:
            assert outcome(batch_of, [other, payload, other]) == found
    batch = batch_of(readable)
    for name in NAMES:
        good: list[int] = []
        for row in range(0, len(events), 2):
            wanted = outcome(to_columns, events[row : row + 1], (name,), "0")
            if isinstance(wanted, str):
                assert outcome(batch[row : row + 2].columns, (name,), "0") == wanted
            else:
                good += [row, row + 1]
        together = batch_of([readable[row] for row in good])
        expected = to_columns([events[row] for row in good], (name,), "0")
        assert together.columns((name,), "0").equals(expected)


def fuzz(seed: int, count: int) -> None:
    random = Random(seed)
    while count > 0:
        originals = [any_message(random, number) for number in range(8)]
        places = [list(lengths_in(raw)) for raw in originals]
        payloads = []
        for _ in range(min(count, BATCH)):
            chosen = random.randrange(len(originals))
            payloads.append(damaged(random, originals[chosen], places[chosen]))
        compare(payloads)
        count -= len(payloads)


def test_columns_with_false_lengths_equal_those_of_events():
    """Two thousand messages."""
    fuzz(0, 2_000)


@pytest.mark.long
@pytest.mark.parametrize(
    "part", [1, *(pytest.param(part, marks=pytest.mark.night) for part in range(2, 33))]
)
def test_columns_of_a_million_messages_with_false_lengths_equal_those_of_events(part):
    """A thirty-second of them each, most of them at night: one must end in time on a busy
    machine."""
    fuzz(part, 31_250)


@pytest.mark.parametrize("inner", ["binary", "list", "map", "array"])
def test_a_false_length_inside_a_property_returns_nothing_of_the_next_event(inner):
    """The list that holds it has its right size; only the last value in it has not."""
    false = {"binary": b"\xa0\xff", "list": b"\xc0\xff\x01\x40", "map": b"\xc1\xff\x00"}.get(
        inner, b"\xe0\xff\x01\xa0\xfc"
    )
    entry = b"\xa1\x01p\xc0" + bytes([1 + len(false), 1]) + false
    properties = b"\x00\x53\x74\xc1" + bytes([1 + len(entry), 2]) + entry
    attacker = position(1) + properties + section(0x75, b"hi")
    batch = batch_of([attacker, message(2, SECRET * 20)])

    with pytest.raises(SourceRejectedError, match="event 1 cannot be decoded"):
        batch.columns(["properties"], "0")
    with pytest.raises(SourceRejectedError, match="event 1 cannot be decoded"):
        _ = EventReader().read([attacker])[0].properties


def test_lengths_are_found_at_every_depth():
    """Otherwise the tests above would change only the outer ones."""
    found = list(lengths_in(encode({"a": [b"xy", {"b": "c"}]})))

    # Two of each map and list; of two names, one binary and one text, one each.
    assert len(found) == 2 * 3 + 4
