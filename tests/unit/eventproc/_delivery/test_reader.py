"""Receiving over one link after the other: which errors a partition survives."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from math import inf

import pytest

from eventproc._base.logs import get_logger
from eventproc._delivery.flow_control import PauseSwitch
from eventproc._delivery.links import Links, QueueLinks
from eventproc._delivery.reader import PartitionReader
from eventproc._delivery.scope import PartitionIdentity, PartitionScope
from eventproc._delivery.steady_link import REJECTIONS_MAX, SteadyLink
from eventproc._group.pumps.stop_scope import PartitionStoppedError, StoppedError, StopScope
from eventproc.errors import (
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
    StoreUnavailableError,
)
from eventproc.models import CloseReason, EventPosition
from eventproc.models._statistics import DeliveryCounters
from eventproc.ports import EventSource, PartitionReceiver, QueueSource
from eventproc.sources.memory import MemoryEventSource
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds
from tests.unit.eventproc._core.events import event


class ShortLink(PartitionReceiver):
    """Delivers one event, and then fails."""

    last_enqueued = None

    def __init__(self, number: int, error: SourceError) -> None:
        self._events = [event(number)]
        self._error = error

    async def receive(self, *, events_max, wait_max):
        """Return the event, or raise the error."""
        if not self._events:
            raise self._error
        return [self._events.pop()]

    async def close(self):
        """Do nothing."""


class ShortLinks(MemoryEventSource):
    """Opens links that deliver one event each."""

    def __init__(self, setup: Setup, error: SourceError) -> None:
        super().__init__(setup.hub)
        self._error = error
        self._opened_count = 0

    async def open_receiver(self, consumer_group, partition_id, position):
        """Open the next link."""
        self._opened_count += 1
        return ShortLink(self._opened_count, self._error)


async def no_answer() -> bool:
    """Verify a lease while the store is out."""
    raise StoreUnavailableError("no answer")


async def is_owned() -> bool:
    """Verify a lease that is valid."""
    return True


async def is_lost() -> bool:
    """Verify a lease that another processor has."""
    return False


def _second(_: int) -> float:
    return 1.0


class Reading:
    """A reader of partition 0 with its link, which waits a second after each error."""

    def __init__(
        self,
        setup: Setup,
        source: EventSource,
        verify=no_answer,
        *,
        stop: StopScope | None = None,
        counters: DeliveryCounters | None = None,
        wait_s: Callable[[int], float] = _second,
    ) -> None:
        identity = PartitionIdentity(partition_id="0", group=setup.group, owner_id="a")
        scope = PartitionScope(
            identity=identity,
            stop=stop or StopScope(lambda: inf),
            counters=counters or DeliveryCounters(),
            log=get_logger("eventproc.test"),
        )
        self.progress = scope.progress
        self.link = SteadyLink(
            QueueLinks(source, identity)
            if isinstance(source, QueueSource)
            else Links(source, identity),
            scope=scope,
            verify=verify,
            wait_s=wait_s,
        )
        self.pause = PauseSwitch(self.link.interrupt)
        self.reader = PartitionReader(self.link, scope=scope, pause_switch=self.pause)
        self.next = self.reader.next


async def opened(setup: Setup) -> MemoryEventSource:
    """The source of the setup's hub, ready to use."""
    source = MemoryEventSource(setup.hub)
    await source.open()
    return source


async def received(error: SourceError, count: int, verify=no_answer) -> list[int]:
    """Return the numbers of the first events that come over links which fail with this error."""
    setup = Setup()
    reading = Reading(setup, ShortLinks(setup, error), verify)
    numbers = []
    for _ in range(count):
        events = await reading.next(EventPosition.earliest, 10, timedelta(seconds=60))
        numbers += [each.sequence_number for each in events]
    return numbers


def test_refusals_with_events_between_them_do_not_end_the_partition():
    """Only refusals in a row show that a retry does not help, not those of a long life."""
    count = 2 * REJECTIONS_MAX

    assert run_virtual(received(SourceRejectedError("no right"), count)) == [*range(1, count + 1)]


@pytest.mark.parametrize("verify", [no_answer, is_owned])
def test_a_displaced_receiver_is_opened_again_unless_the_partition_is_lost(verify):
    """If the store does not answer, the lease says for how long it may be served."""
    assert run_virtual(received(ReceiverDisplacedError("taken"), 3, verify)) == [1, 2, 3]


def test_another_error_of_the_link_does_not_ask_for_the_ownership_record():
    """A link that broke says nothing about the lease."""
    assert run_virtual(received(SourceUnavailableError("broken"), 3, is_lost)) == [1, 2, 3]


async def ask(reading: Reading, call: str) -> None:
    """Ask for the partition's properties, or for events."""
    if call == "properties":
        await reading.link.properties_with_retries()
    else:
        await reading.next(EventPosition.earliest, 10, timedelta(seconds=60))


@pytest.mark.parametrize("call", ["next", "properties"])
@pytest.mark.parametrize("other_error_after", [None, REJECTIONS_MAX - 1])
def test_refusals_in_a_row_end_the_partition(call, other_error_after):
    """Another error between them shows that the source does not refuse for good."""

    class Refusing(MemoryEventSource):
        asked_count = 0

        async def partition_properties(self, partition_id):
            self.asked_count += 1
            if self.asked_count - 1 == other_error_after:
                raise SourceUnavailableError("no answer")
            raise SourceRejectedError("no right")

        async def open_receiver(self, consumer_group, partition_id, position):
            await self.partition_properties(partition_id)
            raise AssertionError

    async def scenario():
        setup = Setup()
        source = Refusing(setup.hub)
        reading = Reading(setup, source)
        with pytest.raises(PartitionStoppedError) as raised:
            await ask(reading, call)
        return raised.value.reason, source.asked_count, asyncio.get_running_loop().time()

    asked = REJECTIONS_MAX + (0 if other_error_after is None else other_error_after + 1)

    assert run_virtual(scenario()) == (CloseReason.SOURCE_FAILED, asked, asked - 1)


async def test_properties_are_asked_for_until_the_source_answers():
    """With a wait after each error."""
    setup = Setup()
    reading = Reading(setup, await opened(setup))
    setup.hub.begin_outage()
    asyncio.get_running_loop().call_later(2.5, setup.hub.end_outage)
    properties = await reading.link.properties_with_retries()

    partition_id, took_s = properties.partition_id, asyncio.get_running_loop().time()

    assert partition_id == "0"
    assert 2.5 <= took_s <= 4


async def test_the_newest_event_of_the_partition_is_known_after_the_link_closed():
    """A pause closes the link, and the lag is still reported."""
    setup = Setup()
    reading = Reading(setup, await opened(setup))
    pause = reading.pause
    setup.publish(3)
    wait = timedelta(seconds=5)
    events = await reading.next(EventPosition.earliest, 2, wait)
    pause.pause()
    task = asyncio.ensure_future(reading.next(EventPosition.earliest, 2, wait))
    await seconds(1)
    known = reading.link.last_enqueued
    task.cancel()

    assert (len(events), None if known is None else known.sequence_number) == (2, 2)


@pytest.mark.parametrize(("begin", "warned"), [(-1, [(3, 4)]), (0, [(0, 1)]), (1, [(3, 4)])])
def test_missing_events_are_warned_of_once(caplog, begin, warned):
    """Not before the first event, which retention moves; and in a compacted hub each batch has a
    gap."""

    async def scenario():
        setup = Setup()
        reading = Reading(setup, await opened(setup))
        reading.reader.begin(begin, None)
        numbers = []
        setup.publish(20)
        for first in (2, 3, 8, 12):  # Events before these were removed.
            setup.hub.trim("0", before=first)
            await reading.link.close()
            (event,) = await reading.next(EventPosition.earliest, 1, timedelta(seconds=5))
            numbers.append(event.sequence_number)
        return numbers

    caplog.set_level("WARNING")

    assert run_virtual(scenario()) == [2, 3, 8, 12]
    missing = [vars(r) for r in caplog.records if vars(r).get("event") == "events_missing"]
    assert [(m["after_sequence_number"], m["missing_count"]) for m in missing] == warned


class QuietLinks(MemoryEventSource):
    """Opens links that deliver nothing, after *open_s* seconds, and notes which are open."""

    def __init__(self, setup: Setup, *, open_s: float = 0.0) -> None:
        super().__init__(setup.hub)
        self._open_s = open_s
        self.opened_count = self.closed_count = 0

    async def partition_properties(self, partition_id):
        """Answer as late as a link is opened."""
        await seconds(self._open_s)
        raise AssertionError

    async def open_receiver(self, consumer_group, partition_id, position):
        """Open the next link."""
        await seconds(self._open_s)
        self.opened_count += 1
        return QuietLink(self)


class QuietLink(PartitionReceiver):
    """Delivers nothing."""

    last_enqueued = None

    def __init__(self, source: QuietLinks) -> None:
        self._source = source

    async def receive(self, *, events_max, wait_max):
        """Wait, and return no event."""
        await seconds(wait_max.total_seconds())
        return []

    async def close(self):
        """Note it."""
        self._source.closed_count += 1


@pytest.mark.parametrize("during", ["open", "receive", "properties", "back-off", "pause"])
async def test_a_stop_ends_every_wait_of_a_reader_at_once(during):
    """The drain does not wait for a source that does not answer."""
    setup = Setup()
    stop = StopScope(lambda: inf)
    source: MemoryEventSource = QuietLinks(setup, open_s=100 * (during != "receive"))
    if during == "back-off":
        source = await opened(setup)
        setup.hub.begin_outage()
    reading = Reading(setup, source, stop=stop)
    if during == "pause":
        reading.pause.pause()
    asyncio.get_running_loop().call_later(
        0.5, lambda: stop.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=9))
    )
    with pytest.raises(StoppedError):
        await ask(reading, during)

    assert asyncio.get_running_loop().time() == 0.5


async def test_a_pause_closes_the_link_and_a_resume_opens_one():
    """Nothing is received meanwhile. The events of a link that is not read would pile up."""
    setup = Setup()
    source = QuietLinks(setup)
    reading = Reading(setup, source)
    pause = reading.pause
    seen = []
    for step in (pause.pause, pause.resume, pause.pause):
        receiving = asyncio.ensure_future(
            reading.next(EventPosition.earliest, 10, timedelta(seconds=60))
        )
        await seconds(1)
        before = source.opened_count
        step()
        await seconds(1)
        seen.append((before, receiving.done(), source.opened_count, source.closed_count))
        receiving.cancel()
    await reading.link.close()
    await reading.link.close()

    assert (seen, source.closed_count) == (
        [(1, True, 1, 0), (1, False, 2, 1), (2, True, 2, 1)],
        2,
    )


async def test_a_restart_opens_one_link_more():
    """The wait under way ends. Afterwards the reader waits again for as long as it was told."""
    setup = Setup()
    source, counters = QuietLinks(setup), DeliveryCounters()
    reading = Reading(setup, source, counters=counters)
    asyncio.get_running_loop().call_later(5, reading.link.restart)
    events = await reading.next(EventPosition.earliest, 10, timedelta(seconds=60))
    took_s = asyncio.get_running_loop().time()

    assert (list(events), took_s, source.opened_count, counters.receiver_error_count) == (
        [],
        11,
        2,
        1,
    )


async def test_received_events_are_counted():
    """Also those that are delivered again after a link broke."""
    setup, counters = Setup(), DeliveryCounters()
    reading = Reading(setup, await opened(setup), counters=counters)
    setup.publish(3)
    for _ in range(2):
        await reading.next(EventPosition.earliest, 10, timedelta(seconds=60))
        await reading.link.close()

    assert counters.received_count == 6


def test_a_timeout_that_the_source_raises_is_its_error():
    """It is not taken for the end of a wait, which would hide it."""
    with pytest.raises(TimeoutError):
        run_virtual(received(TimeoutError(), 2))  # type: ignore[arg-type]
