"""What is done with an event that is given up, and what the log and the counters say of it."""

import asyncio
import logging
from datetime import timedelta
from math import inf
from typing import Any

import pytest

from eventproc._base.logs import get_logger
from eventproc._delivery.config import FailureAction
from eventproc._delivery.failure_actions import FailureActions
from eventproc._delivery.scope import PartitionIdentity, PartitionScope
from eventproc._group.pumps.stop_scope import PartitionStoppedError, StoppedError, StopScope
from eventproc.dead_letters import FunctionDeadLetterSink, MemoryDeadLetterSink
from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.values import Value
from eventproc.errors import DeadLetterError
from eventproc.models import UNDECODED, CloseReason, DeadLetter, ReceivedEvent, letter_from_json
from eventproc.models._dead_letter import describe_error
from eventproc.models._statistics import DeliveryCounters
from eventproc.ports import DeadLetterSink
from eventproc.sources.eventhubs._direct_path.lazy_event import EventReader
from tests.scenarios.group_setup import Setup, seconds
from tests.unit.eventproc._core.events import event
from tests.unit.eventproc.sources.eventhubs.messages import position, section


class ActionsFixture:
    """The actions of partition 0, which wait a second after each failure of the sink."""

    def __init__(self, action: FailureAction, sink: DeadLetterSink | None = None) -> None:
        self.stop = StopScope(lambda: inf)
        self.counters = DeliveryCounters()
        self.attempts: list[int] = []
        self.actions = FailureActions(
            action,
            sink=sink,
            scope=PartitionScope(
                identity=PartitionIdentity(partition_id="0", group=Setup().group, owner_id="a"),
                stop=self.stop,
                counters=self.counters,
                log=get_logger("eventproc.test"),
            ),
            wait_s=self._wait_s,
        )

    def _wait_s(self, attempt: int) -> float:
        self.attempts.append(attempt)
        return 1.0


def lines_of(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The fields of each logged event."""
    return [vars(record) for record in caplog.records]


@pytest.mark.parametrize(
    ("action", "level", "name", "counts"),
    [
        (FailureAction.DEAD_LETTER, "WARNING", "event_dead_lettered", (1, 0)),
        (FailureAction.SKIP, "WARNING", "event_skipped", (0, 1)),
        (FailureAction.STOP, "ERROR", "event_stopped_partition", (0, 0)),
    ],
)
@pytest.mark.parametrize("error", [ValueError("no amount"), None], ids=["failed", "killed"])
async def test_giving_an_event_up_is_logged_and_counted(caplog, action, level, name, counts, error):
    """With its number, its attempts and why: also if its processes died, and there is no error."""
    fixture = ActionsFixture(action, MemoryDeadLetterSink())
    try:
        await fixture.actions.apply(event(7), error, 3)
    except PartitionStoppedError:
        assert action is FailureAction.STOP

    assert (fixture.counters.dead_lettered_count, fixture.counters.skipped_count) == counts
    (line,) = lines_of(caplog)
    assert (line["levelname"], line["event"]) == (level, name)
    assert (line["sequence_number"], line["attempt_count"]) == (7, 3)
    assert ("process died" if error is None else "ValueError('no amount')") in line["error"]


async def test_the_action_stop_ends_the_partition_because_its_handler_failed():
    """The handler's error is the cause, so that a traceback shows it."""
    failure = ValueError("no amount")

    with pytest.raises(PartitionStoppedError) as raised:
        await ActionsFixture(FailureAction.STOP).actions.apply(event(7), failure, 3)

    assert (raised.value.reason, raised.value.__cause__) == (CloseReason.HANDLER_FAILED, failure)


def unreadable(section_of_properties: bytes) -> tuple[bytes, ReceivedEvent]:
    payload = position(5) + section_of_properties + section(0x75, b"hi")
    (found,) = EventReader().read([payload])
    return payload, found


def nested(depth: int) -> Value:
    value: Value = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        (b"\xa1\x01a\xa1\x20x", "cannot be decoded"),
        (b"\xa1\x01a\x73\x00\x00\xd8\x00", "cannot be decoded"),
        (b"\xa1\x01a" + encode(nested(100)), "nested more than 50 deep"),
    ],
    ids=["a false length", "a surrogate as a character", "deeply nested values"],
)
async def test_an_event_that_cannot_be_decoded_is_stored_as_its_message(encoded, reason):
    """So no sink fails on it, and its partition does not wait for ever."""
    count = len(encoded) + 4
    payload, damaged = unreadable(
        b"\x00\x53\x74\xd1" + count.to_bytes(4) + b"\x00\x00\x00\x02" + encoded
    )
    sink = MemoryDeadLetterSink()

    await ActionsFixture(FailureAction.DEAD_LETTER, sink).actions.apply(damaged, None, 1)

    (letter,) = sink.letters
    assert (letter.event.body, letter.event.properties) == (payload, {})
    assert (letter.event.sequence_number, letter.event.offset) == (5, "1500")
    assert reason in str(letter.event.system_properties[UNDECODED])
    assert letter_from_json(letter.to_json()).event.body == payload


def test_the_texts_of_an_error_are_unicode():
    """A lone surrogate in one could not be encoded by any sink."""
    _, message, traceback = describe_error(ValueError("lone \ud800"))

    assert message == "lone \\ud800"
    assert traceback.encode()


async def test_an_event_counts_as_dead_lettered_when_its_letter_is_stored(caplog):
    """Not while the sink works: if the process dies then, there may be no letter."""
    stored = asyncio.Event()

    async def take(_: DeadLetter) -> None:
        await stored.wait()

    fixture = ActionsFixture(FailureAction.DEAD_LETTER, FunctionDeadLetterSink(take))
    applying = asyncio.ensure_future(fixture.actions.apply(event(7), ValueError(), 3))
    await seconds(5)
    before = fixture.counters.dead_lettered_count, len(caplog.records)
    stored.set()
    await applying

    assert (before, (fixture.counters.dead_lettered_count, len(caplog.records))) == ((0, 0), (1, 1))


async def test_an_outage_of_the_sink_is_logged_when_it_begins_and_ends(caplog):
    """The waits grow meanwhile, and the last line tells how many attempts it took."""
    sink = MemoryDeadLetterSink()
    sink.is_out = True
    caplog.set_level(logging.DEBUG, "eventproc")

    fixture = ActionsFixture(FailureAction.DEAD_LETTER, sink)
    applying = asyncio.ensure_future(fixture.actions.apply(event(7), ValueError(), 3))
    await seconds(2.5)
    sink.is_out = False
    await applying

    assert (fixture.attempts, asyncio.get_running_loop().time()) == ([1, 2, 3], 3)
    *failed, recovered, _ = lines_of(caplog)
    assert [(line["levelname"], line["event"], line["attempt"]) for line in failed] == [
        ("ERROR", "dead_letter_failed", 1),
        ("DEBUG", "dead_letter_failed", 2),
        ("DEBUG", "dead_letter_failed", 3),
    ]
    assert (recovered["levelname"], recovered["event"]) == ("INFO", "dead_letter_recovered")
    assert recovered["attempt_count"] == 4


@pytest.mark.parametrize(
    ("refusal", "text", "has_traceback"),
    [(DeadLetterError("disk full"), "disk full", False), (OSError(28), "OSError(28)", True)],
    ids=["expected", "unexpected"],
)
async def test_only_an_unexpected_error_of_a_sink_is_logged_with_its_traceback(
    caplog, refusal, text, has_traceback
):
    """It is a fault in the sink. A ``DeadLetterError`` says all that an operator has to know."""
    refusals = [refusal]

    class RefusingOnce(DeadLetterSink):
        async def store(self, letter):
            if refusals:
                raise refusals.pop()

    fixture = ActionsFixture(FailureAction.DEAD_LETTER, RefusingOnce())
    await fixture.actions.apply(event(7), ValueError(), 3)

    line = lines_of(caplog)[0]

    assert (line["event"], line["error"]) == ("dead_letter_failed", text)
    assert bool(line["exc_info"]) == has_traceback


@pytest.mark.parametrize("is_answering", [True, False])
async def test_a_stop_does_not_wait_for_a_sink(is_answering):
    """Whether the sink refuses or hangs; the event is not done, and the next owner gives it up."""

    async def take(_: DeadLetter) -> None:
        if is_answering:
            raise OSError
        await asyncio.Event().wait()

    fixture = ActionsFixture(FailureAction.DEAD_LETTER, FunctionDeadLetterSink(take))
    asyncio.get_running_loop().call_later(
        2.5, lambda: fixture.stop.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=9))
    )
    with pytest.raises(StoppedError):
        await fixture.actions.apply(event(7), ValueError(), 3)

    assert (fixture.counters.dead_lettered_count, asyncio.get_running_loop().time()) == (0, 2.5)
