"""The log: sequence numbers that are never used again, positions that find their events."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.message import draft_of
from eventproc.emulator._amqp.refusal import RefusedError
from eventproc.emulator._amqp.values import Described, Symbol, ULong, Value
from eventproc.emulator._hub.log import (
    EARLIEST,
    LATEST,
    NEVER_MS,
    PartitionLog,
    PositionKind,
    Retention,
    StartPosition,
    parse_selector,
)


def drafts(*bodies):
    """Events with these bodies."""
    return [draft_of(encode(Described(ULong(0x75), body))) for body in bodies]


def filled(count=10, step_ms=1000):
    """A log of one event each second, from second 1 on."""
    log = PartitionLog()
    for index in range(count):
        log.append(log.place(drafts(b"x" * index), 1000 + index * step_ms))
    return log


def found(log, position):
    """The sequence numbers from a position on."""
    return [event.sequence_number for event in log.read(log.start_of(position), 1000, 10**9)]


class LogMachine(RuleBasedStateMachine):
    """Compares a log with a list that deletes nothing."""

    def __init__(self):
        super().__init__()
        self.log = PartitionLog()
        self.all = []
        self.now_ms = 0

    @rule(sizes=st.lists(st.integers(0, 300), max_size=5), now_ms=st.integers(0, 10_000))
    def append(self, sizes, now_ms):
        placed = self.log.place(drafts(*(b"x" * size for size in sizes)), now_ms)
        self.log.append(placed)
        self.all += placed
        self.now_ms = max(self.now_ms, now_ms)

    @rule(events_max=st.none() | st.integers(0, 10), bytes_max=st.none() | st.integers(0, 2000))
    def expire_by_size(self, events_max, bytes_max):
        least = min(len(self.log), 1 if events_max is None else events_max, 1)
        self.log.expire(Retention(events_max=events_max, bytes_max=bytes_max), self.now_ms)

        assert len(self.log) >= least
        assert events_max is None or len(self.log) <= events_max
        assert bytes_max is None or self.log.byte_count <= bytes_max or len(self.log) == 1

    @rule(age_ms=st.integers(0, 5000))
    def expire_by_age(self, age_ms):
        self.log.expire(Retention(age_max=timedelta(milliseconds=age_ms)), self.now_ms)
        kept = self.log.read(0, 10**6, 10**9)

        assert all(event.enqueued_ms >= self.now_ms - age_ms for event in kept)

    @rule(sequence_number=st.integers(-5, 60))
    def drop(self, sequence_number):
        self.log.drop_before(sequence_number)

        assert self.log.first_sequence_number >= min(sequence_number, self.log.next_sequence_number)

    @invariant()
    def keeps_the_youngest_of_all(self):
        kept = self.log.read(0, 10**6, 10**9)

        assert kept == self.all[len(self.all) - len(kept) :]
        assert len(self.log) == len(kept)
        assert self.log.byte_count == sum(len(event.payload) for event in kept)
        assert self.log.next_sequence_number == len(self.all)

    @invariant()
    def numbers_only_rise(self):
        numbers = [event.sequence_number for event in self.all]
        offsets = [event.offset for event in self.all]
        times = [event.enqueued_ms for event in self.all]

        assert numbers == list(range(len(self.all)))
        assert offsets == sorted(set(offsets))
        assert times == sorted(times)

    @invariant()
    def positions_name_their_events(self):
        kept = self.log.read(0, 10**6, 10**9)
        for event in kept[-3:]:
            for kind, value in (
                (PositionKind.SEQUENCE_NUMBER, event.sequence_number),
                (PositionKind.OFFSET, event.offset),
            ):
                at = self.log.start_of(StartPosition(kind, value, inclusive=True))
                after = self.log.start_of(StartPosition(kind, value))

                assert (at, after) == (event.sequence_number, event.sequence_number + 1)


TestLog = LogMachine.TestCase


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("amqp.annotation.x-opt-offset > '-1'", range(10)),
        ("amqp.annotation.x-opt-offset > '@latest'", []),
        ("amqp.annotation.x-opt-offset >= '0'", range(10)),
        ("amqp.annotation.x-opt-offset > '0'", range(1, 10)),
        ("amqp.annotation.x-opt-sequence-number > '6'", [7, 8, 9]),
        ("amqp.annotation.x-opt-sequence-number >= '6'", [6, 7, 8, 9]),
        ("amqp.annotation.x-opt-sequence-number > '9'", []),
        ("amqp.annotation.x-opt-sequence-number > '-1'", range(10)),
        ("amqp.annotation.x-opt-enqueued-time > '8000'", [8, 9]),
        ("amqp.annotation.x-opt-enqueued-time >= '8000'", [7, 8, 9]),
        ("amqp.annotation.x-opt-enqueued-time > '8001'", [8, 9]),
        ("amqp.annotation.x-opt-enqueued-time > '99999999'", []),
        ("amqp.annotation.x-opt-enqueued-time > '-5'", range(10)),
    ],
)
def test_selectors_begin_at_the_events_they_name(selector, expected):
    """In a log of ten events, at seconds 1 to 10."""
    assert found(filled(), parse_selector(selector)) == list(expected)


@pytest.mark.parametrize(
    "selector",
    ["", "x-opt-offset > '1'", "amqp.annotation.x-opt-offset < '1'", "amqp.annotation.x > 1; DROP"],
)
def test_invalid_selectors_are_refused(selector):
    """Instead of reading from the start."""
    with pytest.raises(RefusedError) as refused:
        parse_selector(selector)

    assert refused.value.condition == "com.microsoft:argument-error"


@pytest.mark.parametrize("kind", [PositionKind.SEQUENCE_NUMBER, PositionKind.OFFSET])
def test_a_position_after_the_end_is_refused(kind):
    """It belongs to another log: waiting for it would look like an idle hub."""
    with pytest.raises(RefusedError, match=r"The last .* in the system is") as refused:
        filled().start_of(StartPosition(kind, 10_000))

    assert refused.value.condition == "com.microsoft:argument-error"


def test_reading_from_an_expired_position_begins_at_the_oldest_event():
    """As in the service."""
    log = filled()
    log.drop_before(5)

    assert found(log, StartPosition(PositionKind.SEQUENCE_NUMBER, 1)) == [5, 6, 7, 8, 9]
    assert found(log, EARLIEST) == [5, 6, 7, 8, 9]
    assert found(log, LATEST) == []


def test_an_empty_partition_has_the_same_properties_as_in_the_service():
    """Clients know it by -1 and the year 1."""
    properties = PartitionLog().properties()

    assert (properties.last_sequence_number, properties.last_offset) == (-1, -1)
    assert (properties.last_enqueued_ms, properties.is_empty) == (NEVER_MS, True)


def test_offsets_differ_from_sequence_numbers():
    """So code that confuses the two fails in a test."""
    second = filled().read(1, 1, 10**9)[0]

    assert second.offset > second.sequence_number


@given(st.integers(1, 20), st.integers(0, 5000))
def test_a_read_keeps_its_limits_but_returns_at_least_one_event(count_max, bytes_max):
    """At most so many events and bytes; one event may be larger."""
    events = filled(20).read(3, count_max, bytes_max)

    assert 1 <= len(events) <= count_max
    assert len(events) == 1 or sum(len(event.payload) for event in events) <= bytes_max
    assert events[0].sequence_number == 3


def keyed_log(*keys):
    """A compacted log of events with these partition keys, or without one, each 1 s apart."""
    log = PartitionLog()
    for index, key in enumerate(keys):
        message = encode(Described(ULong(0x75), b"x"))
        if key is not None:
            annotations: dict[Value, Value] = {Symbol("x-opt-partition-key"): key}
            message = encode(Described(ULong(0x72), annotations)) + message
        log.append(log.place([draft_of(message)], 1000 * index))
        log.compact()
    return log


def test_a_compacted_log_has_the_newest_event_of_each_key():
    """Numbers keep their values; a position finds the next event that is left."""
    log = keyed_log("a", "b", None, "b", "b", "c", None)
    at = [found(log, StartPosition(PositionKind.SEQUENCE_NUMBER, n)) for n in (0, 2, 4)]
    times = found(log, StartPosition(PositionKind.ENQUEUED_TIME, 3000, inclusive=True))

    assert found(log, EARLIEST) == [0, 2, 4, 5, 6]
    assert at == [[2, 4, 5, 6], [4, 5, 6], [5, 6]]
    assert times == [4, 5, 6]
    assert log.byte_count == sum(len(event.payload) for event in log.read(0, 10, 10**9))
    assert (len(log), log.next_sequence_number) == (5, 7)


def test_a_compacted_log_begins_at_the_oldest_event_that_is_left():
    """Whether a newer one superseded those before it, or retention deleted them."""
    log = keyed_log("a", "b", "a", None, "c")
    first = log.first_sequence_number
    dropped = log.drop_before(4)

    assert (first, dropped, found(log, EARLIEST)) == (1, 3, [4])
