"""What a reader makes of its links: what it logs, closes, counts as progress, and refuses."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf

import pytest

from eventproc._delivery.reader import FormerHubError
from eventproc._group.pumps.stop_scope import PartitionStoppedError, StoppedError, StopScope
from eventproc.errors import OwnershipLostError, PositionLostError, ReceiverDisplacedError
from eventproc.models import CloseReason, EventPosition
from eventproc.ports import QueueReceiver, QueueSource
from eventproc.sources.memory import MemoryEventSource
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds
from tests.scenarios.test_link_failures import BROKEN, REFUSED, ReaderFixture, ScriptedLink
from tests.unit.eventproc._delivery.test_reader import Reading, ShortLinks, is_lost

WAIT = timedelta(seconds=60)


async def test_failures_of_links_are_logged_when_they_begin_and_end(caplog):
    """A refusal is an error, also after failures that end by themselves."""
    caplog.set_level(logging.DEBUG, "eventproc")

    assert (await ReaderFixture(BROKEN, REFUSED, BROKEN, [1]).next()) == [1]
    *failed, recovered = [vars(record) for record in caplog.records]
    assert [(line["levelname"], line["event"], line["attempt"]) for line in failed] == [
        ("WARNING", "receiver_failed", 1),
        ("ERROR", "receiver_failed", 2),
        ("DEBUG", "receiver_failed", 3),
    ]
    assert (recovered["event"], recovered["attempt_count"]) == ("receiver_recovered", 3)


async def test_a_link_that_holds_without_events_is_logged_as_recovered(caplog):
    """A quiet hub may have no event for hours after an outage."""
    caplog.set_level(logging.DEBUG, "eventproc")
    fixture = ReaderFixture(BROKEN, BROKEN)
    received = await fixture.next()
    after_s = asyncio.get_running_loop().time()
    recovered = vars(caplog.records[-1])

    assert (received, recovered["event"], recovered["attempt_count"]) == (
        [],
        "receiver_recovered",
        2,
    )
    assert after_s < 10


def test_a_pause_is_logged_when_it_begins_and_ends(caplog):
    """An operator looks there for the reason why nothing is received."""
    caplog.set_level(logging.INFO, "eventproc")

    async def scenario():
        fixture = ReaderFixture([1])
        fixture.pause.pause()
        reading = asyncio.ensure_future(fixture.next())
        await seconds(5)
        during = [vars(record)["event"] for record in caplog.records]
        fixture.pause.resume()
        await reading
        return during, [vars(record)["event"] for record in caplog.records]

    both = ["partition_paused", "partition_resumed"]

    assert run_virtual(scenario()) == (both[:1], both)


async def test_events_of_one_batch_after_the_other_are_not_missing(caplog):
    """The number after the last event of a batch is expected next."""
    fixture = ReaderFixture([1, 2, 3], [4, 5])
    received = [await fixture.next(), await fixture.next()]

    assert (received, fixture.reading.reader.newest_received) == ([[1, 2, 3], [4, 5]], 5)
    assert not caplog.records


async def test_only_events_that_are_received_for_the_first_time_are_progress():
    """A link that breaks again and again delivers the same events; that is a stall."""
    fixture = ReaderFixture([1, 2], [1, 2], [1], [2, 3])
    seen = []
    for _ in range(4):
        await seconds(1)
        await fixture.next()
        seen.append(fixture.reading.progress.at_s)

    assert seen == [1, 1, 1, 4]


async def test_a_link_that_failed_is_closed_before_the_next_one_is_opened():
    """Otherwise each failure leaves a connection open."""
    seen = []

    class NotedLink(ScriptedLink):
        async def close(self):
            seen.append("close")

    fixture = ReaderFixture(BROKEN, BROKEN, [1])

    async def open_receiver(consumer_group, partition_id, position):
        seen.append("open")
        return NotedLink(fixture.source)

    fixture.source.open_receiver = open_receiver  # type: ignore[method-assign]
    await fixture.next()

    assert seen == ["open", "close", "open", "close", "open"]


async def test_a_partition_whose_link_was_taken_is_left_without_a_wait():
    """Its new owner serves it already."""
    setup = Setup()
    links = ShortLinks(setup, ReceiverDisplacedError("taken"))
    reading = Reading(setup, links, is_lost)
    await reading.next(EventPosition.earliest, 10, WAIT)
    with pytest.raises(OwnershipLostError):
        await reading.next(EventPosition.earliest, 10, WAIT)

    assert asyncio.get_running_loop().time() == 0


class RefusingLinks(MemoryEventSource):
    """Fails to open a link the first time, and perhaps to tell where the partition ends."""

    error: Exception = REFUSED
    end_error: Exception | None = None
    is_refused = False
    created: datetime | None = None

    @property
    def created_at(self):
        """When the hub was created."""
        return self.created

    async def partition_properties(self, partition_id):
        """Answer, or fail."""
        if self.end_error is not None:
            raise self.end_error
        return await super().partition_properties(partition_id)

    async def open_receiver(self, consumer_group, partition_id, position):
        """Fail once; then open a link, at the first event."""
        if not self.is_refused:
            self.is_refused = True
            raise self.error
        return await super().open_receiver(consumer_group, partition_id, EventPosition.earliest())


class RefusingQueues(RefusingLinks, QueueSource):
    """As queues would."""

    unsettled_max = 10


@pytest.mark.parametrize(
    ("number", "changes", "has_checkpoint", "is_former"),
    [
        (3, {}, True, True),
        (2, {}, True, False),
        (3, {"error": BROKEN}, True, False),
        (3, {"end_error": BROKEN}, True, False),
        (3, {"end_error": REFUSED}, True, False),
        (3, {}, False, False),
    ],
    ids=["above", "newest", "outage", "no answer", "no right", "no checkpoint"],
)
def test_a_checkpoint_is_of_a_former_hub_if_its_position_is_refused_and_above_the_end(
    number, changes, has_checkpoint, is_former
):
    """Nothing else proves that. Any doubt means another attempt, for a hub is rarely deleted."""

    async def scenario():
        setup = Setup()
        setup.publish(3)
        source = RefusingLinks(setup.hub)
        await source.open()
        reading = Reading(setup, source)
        for name, value in changes.items():
            setattr(source, name, value)
        reading.reader.begin(None, datetime.now(UTC) if has_checkpoint else None)
        position = EventPosition.from_sequence_number(number)
        try:
            return len(await reading.next(lambda: position, 10, WAIT))
        except FormerHubError:
            return None

    assert run_virtual(scenario()) == (None if is_former else 3)


@pytest.mark.parametrize("number", [3, None], ids=["known", "none"])
def test_a_position_is_of_a_former_hub_if_its_events_are_known_to_be_lost(number):
    """Also one without a checkpoint; before the first event there is none to lose."""

    async def scenario():
        setup = Setup()
        setup.publish(3)
        source = RefusingLinks(setup.hub)
        source.error = PositionLostError("gone")
        await source.open()
        reading = Reading(setup, source)
        reading.reader.begin(None, None)
        position = EventPosition.earliest()
        if number is not None:
            position = EventPosition.from_sequence_number(number, is_inclusive=True)
        return len(await reading.next(lambda: position, 10, WAIT))

    if number is None:
        assert run_virtual(scenario()) == 3
    else:
        with pytest.raises(FormerHubError):
            run_virtual(scenario())


async def test_a_queue_that_refuses_is_not_taken_for_a_new_one():
    """Its service keeps the position, so no number of a checkpoint is above its end."""
    setup = Setup()
    setup.publish(3)
    source = RefusingQueues(setup.hub)
    await source.open()
    reading = Reading(setup, source)
    reading.reader.begin(None, datetime.now(UTC))
    position = EventPosition.from_sequence_number(3)

    assert len(await reading.next(lambda: position, 10, WAIT)) == 3


@pytest.mark.parametrize(
    ("number", "younger_s", "is_former"),
    [(5, 1, True), (0, 1, True), (-1, 1, False), (5, 0, False), (5, -1, False)],
    ids=["of an event", "of the first", "before the first", "as old", "older"],
)
def test_a_position_of_an_event_is_of_a_former_hub_if_the_hub_is_younger(
    number, younger_s, is_former
):
    """The position before the first event is one of any hub, and what follows is of this one."""

    async def scenario():
        setup = Setup()
        setup.publish(2)
        source = RefusingLinks(setup.hub)
        source.is_refused = True
        await source.open()
        reading = Reading(setup, source)
        known_since = datetime.now(UTC)
        reading.reader.begin(None, known_since)
        source.created = known_since + timedelta(seconds=younger_s)
        received = 0
        for at in (number, number + 1):
            position = partial(EventPosition.from_sequence_number, at)
            received += len(await reading.next(position, 1, WAIT))
        return received

    if is_former:
        with pytest.raises(FormerHubError):
            run_virtual(scenario())
    else:
        assert run_virtual(scenario()) == 2


class SettlingLink(QueueReceiver):
    """Delivers nothing; knows what was settled after ten seconds, or never."""

    last_enqueued = None

    def __init__(self, *, is_broken: bool) -> None:
        self._is_broken = is_broken

    async def receive(self, *, events_max, wait_max):
        """Return no event."""
        return ()

    def settle(self, sequence_number, completed=()):
        """Do nothing."""

    async def until_settled(self):
        """Wait, or fail."""
        await seconds(10)
        if self._is_broken:
            raise BROKEN

    async def stop(self):
        """Do nothing."""

    async def close(self):
        """Do nothing."""


class SettlingLinks(MemoryEventSource, QueueSource):
    """Opens such links."""

    is_broken = False
    unsettled_max = 10

    async def open_receiver(self, consumer_group, partition_id, position):
        """Open one."""
        return SettlingLink(is_broken=self.is_broken)


@pytest.mark.parametrize("link", ["works", "is broken", "is closed"])
def test_what_was_settled_is_known_or_the_partition_ends(caplog, link):
    """If it may not be known, events that are done come again, with other numbers."""

    async def scenario():
        setup = Setup()
        source = SettlingLinks(setup.hub)
        source.is_broken = link == "is broken"
        reading = Reading(setup, source)
        await reading.next(EventPosition.earliest, 10, WAIT)
        if link == "is closed":
            await reading.link.close()
        try:
            await reading.link.until_settled()
        except PartitionStoppedError as error:
            return error.reason, asyncio.get_running_loop().time()
        return None, asyncio.get_running_loop().time()

    reason = None if link == "works" else CloseReason.SOURCE_FAILED

    assert run_virtual(scenario()) == (reason, 0 if link == "is closed" else 10)
    logged = [(record.levelname, vars(record)["event"]) for record in caplog.records]
    assert logged == ([] if reason is None else [("WARNING", "receiver_failed")])


async def test_a_stop_ends_the_wait_for_what_was_settled_at_once():
    """The service may not answer any more."""
    setup, stop = Setup(), StopScope(lambda: inf)
    reading = Reading(setup, SettlingLinks(setup.hub), stop=stop)
    await reading.next(EventPosition.earliest, 10, WAIT)
    asyncio.get_running_loop().call_later(
        5, lambda: stop.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=9))
    )
    with pytest.raises(StoppedError):
        await reading.link.until_settled()

    assert asyncio.get_running_loop().time() == 5
