"""What a reader remembers over failures, pauses and restarts of its link, and what it forgets."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from math import inf

import pytest

from eventproc._delivery.steady_link import REJECTIONS_MAX
from eventproc._group.pumps.stop_scope import StoppedError, StopScope
from eventproc.errors import ReceiverDisplacedError, SourceRejectedError, SourceUnavailableError
from eventproc.models import CloseReason, EventPosition, LastEnqueued
from eventproc.models._statistics import DeliveryCounters
from eventproc.ports import PartitionReceiver
from eventproc.sources.memory import MemoryEventSource
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds
from tests.unit.eventproc._core.events import events, numbers
from tests.unit.eventproc._delivery.test_reader import Reading

REFUSED = SourceRejectedError("no right")
BROKEN = SourceUnavailableError("broken")
Step = Exception | Sequence[int] | float


class ScriptedLink(PartitionReceiver):
    """Takes the next step of its source: raise, return events, or wait for so many seconds."""

    def __init__(self, source: "ScriptedLinks") -> None:
        self._source = source

    @property
    def last_enqueued(self):
        """The newest event, if this link was told already."""
        return self._source.last_enqueued

    @property
    def first_sequence_number(self):
        """The first event that the link passed on, if it filtered some."""
        return self._source.first

    async def receive(self, *, events_max, wait_max):
        """Take the next step."""
        step = self._source.steps.pop(0) if self._source.steps else wait_max.total_seconds()
        if isinstance(step, Exception):
            raise step
        if isinstance(step, float):
            try:
                await seconds(step)
            finally:
                await seconds(self._source.cancel_s)
            return []
        return events(step)

    async def close(self):
        """Do nothing."""


class ScriptedLinks(MemoryEventSource):
    """Opens links that take these steps, one link after the other."""

    def __init__(self, setup: Setup, *steps: Step) -> None:
        super().__init__(setup.hub)
        self.steps = [*steps]
        self.last_enqueued: LastEnqueued | None = None
        self.first: int | None = None
        self.cancel_s = 0.0
        """How long a link takes to end when it is cancelled."""

    async def open_receiver(self, consumer_group, partition_id, position):
        """Open the next link."""
        return ScriptedLink(self)


class ReaderFixture:
    """A reader of scripted links."""

    def __init__(self, *steps: Step) -> None:
        setup = Setup()
        self.source = ScriptedLinks(setup, *steps)
        self.stop = StopScope(lambda: inf)
        self.counters = DeliveryCounters()
        self.attempts: list[int] = []
        self.reading = Reading(
            setup,
            self.source,
            self._verify,
            stop=self.stop,
            counters=self.counters,
            wait_s=self._wait_s,
        )
        self.link, self.pause = self.reading.link, self.reading.pause

    def _wait_s(self, attempt: int) -> float:
        self.attempts.append(attempt)
        return 1.0

    async def _verify(self) -> bool:
        await seconds(1000)
        return True

    async def next(self) -> list[int]:
        """Receive the next events."""
        wait = timedelta(seconds=60)
        return numbers(await self.reading.next(EventPosition.earliest, 10, wait))


async def test_the_waits_grow_with_each_failure_in_a_row_until_events_arrive():
    """An opened link alone proves nothing: it may break at once."""
    fixture = ReaderFixture(BROKEN, BROKEN, BROKEN, [1], BROKEN, BROKEN, [2])

    assert ([await fixture.next(), await fixture.next()], fixture.attempts) == (
        [[1], [2]],
        [1, 2, 3, 1, 2],
    )


@pytest.mark.parametrize("between", ["events", "properties"])
def test_refusals_are_counted_from_zero_after_the_source_has_answered(between):
    """It takes ``REJECTIONS_MAX`` in a row, however many there were before."""
    refusals = [REFUSED] * (REJECTIONS_MAX - 1)

    async def scenario():
        if between == "events":
            fixture = ReaderFixture(*refusals, [1], *refusals, [2])
            return [await fixture.next(), await fixture.next()]
        fixture = ReaderFixture(*refusals, [2])
        await fixture.source.open()
        answers = fixture.source.partition_properties

        async def refuse(partition_id):
            if len(fixture.attempts) < len(refusals):
                raise REFUSED
            return await answers(partition_id)

        fixture.source.partition_properties = refuse  # type: ignore[method-assign]
        await fixture.link.properties_with_retries()
        return [[1], await fixture.next()]

    assert run_virtual(scenario()) == [[1], [2]]


async def test_the_newest_event_is_known_until_a_new_link_reports_one():
    """A link that was just opened does not know it yet; the lag is still reported."""
    fixture = ReaderFixture([1], BROKEN, [2])
    known = LastEnqueued(sequence_number=9, offset="9", enqueued_time=None)
    fixture.source.last_enqueued = known
    await fixture.next()
    assert fixture.link.last_enqueued is known
    fixture.source.last_enqueued = None
    await fixture.next()

    assert fixture.link.last_enqueued is known


async def test_events_that_a_link_filtered_out_are_not_missing(caplog):
    """The link tells which event was its first one; what it left out was there."""
    fixture = ReaderFixture([7])
    fixture.reading.reader.begin(3, None)
    fixture.source.first = 4

    assert await fixture.next() == [7]
    assert not caplog.records


async def test_a_pause_during_a_back_off_does_not_touch_the_link_that_failed():
    """Its wait is over; the next one begins when the partition is resumed."""
    fixture = ReaderFixture(BROKEN, [1])
    await fixture.source.open()  # A paused partition is asked for its newest event.
    reading = asyncio.ensure_future(fixture.next())
    await seconds(0.5)
    fixture.pause.pause()
    await seconds(30)
    fixture.pause.resume()

    assert (await reading, asyncio.get_running_loop().time()) == ([1], 30.5)


async def test_a_failure_before_a_pause_does_not_count_after_it():
    """The hub was not asked meanwhile, so nobody knows how long it was away."""
    fixture = ReaderFixture(BROKEN, BROKEN, [1])
    await fixture.source.open()
    reading = asyncio.ensure_future(fixture.next())
    await seconds(0.5)
    fixture.pause.pause()
    await seconds(30)
    fixture.pause.resume()
    await seconds(0.5)
    failing_s = fixture.link.failures.failing_s

    assert (failing_s, await reading) == (0.5, [1])


async def test_a_link_that_is_slow_to_end_may_be_interrupted_twice():
    """By a restart, and by a pause while it still ends."""
    fixture = ReaderFixture()
    fixture.source.cancel_s = 3.0
    reading = asyncio.ensure_future(fixture.next())
    await seconds(5)
    fixture.link.restart()
    await seconds(1)
    fixture.pause.pause()
    await seconds(1)
    fixture.pause.resume()
    await seconds(20)
    fixture.source.steps = [[1]]
    fixture.pause.pause()
    await seconds(10)
    fixture.pause.resume()

    assert (await reading, await fixture.next()) == ([], [1])


async def test_a_restart_that_events_overtook_is_forgotten():
    """They show that the link works, so the next quiet minute is no error."""
    fixture = ReaderFixture([1])
    fixture.link.restart()
    received = [await fixture.next(), await fixture.next()]

    assert (received, fixture.counters.receiver_error_count) == ([[1], []], 0)


@pytest.mark.parametrize(
    ("error", "has_remedy"),
    [(ReceiverDisplacedError("taken"), True), (SourceUnavailableError("no answer"), False)],
)
async def test_a_link_that_another_receiver_took_is_logged_with_a_remedy(error, has_remedy, caplog):
    """It names a second program, which may have another store, so that nothing else tells of it."""
    fixture = ReaderFixture(error, [1])
    await fixture.next()

    (failed,) = [r for r in caplog.records if getattr(r, "event", "") == "receiver_failed"]
    assert ("another program reads this consumer group" in (failed.remedy or "")) is has_remedy


async def test_a_stop_ends_the_wait_for_the_ownership_record():
    """Another receiver took the link, and the store does not answer."""
    fixture = ReaderFixture(ReceiverDisplacedError("taken"))
    asyncio.get_running_loop().call_later(
        5, lambda: fixture.stop.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=9))
    )
    with pytest.raises(StoppedError):
        await fixture.next()

    assert asyncio.get_running_loop().time() == 5
