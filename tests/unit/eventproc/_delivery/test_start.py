"""Where a pump begins, and what it does until it may: adopt the checkpoint, and try again."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from math import inf
from typing import Any

import pytest

from eventproc._base.logs import get_logger
from eventproc._delivery.scope import PartitionIdentity, PartitionScope
from eventproc._delivery.start import find_start
from eventproc._group.pumps.stop_scope import PartitionStoppedError, StoppedError, StopScope
from eventproc.errors import (
    HubRecreatedError,
    StoreError,
    StoreRejectedError,
    StoreUnavailableError,
)
from eventproc.models import CloseReason, EventPosition, SequenceRange
from eventproc.models._statistics import DeliveryCounters
from eventproc.ports import QueueSource
from eventproc.sources.memory import MemoryEventSource
from tests.scenarios.group_setup import Setup, seconds
from tests.unit.eventproc._core.events import events, numbers
from tests.unit.eventproc._delivery.checkpoint_fixture import CheckpointFixture
from tests.unit.eventproc._delivery.test_reader import Reading

NO_ANSWER = StoreUnavailableError("no answer")
REFUSED = StoreRejectedError("no right")


class Source(MemoryEventSource):
    """Names no offset in a partition that never had an event."""

    async def partition_properties(self, partition_id):
        """Answer."""
        properties = await super().partition_properties(partition_id)
        is_new = properties.last_enqueued_sequence_number < 0
        return replace(properties, last_enqueued_offset="") if is_new else properties


class Queues(Source, QueueSource):  # type: ignore[misc]
    """As queues would."""

    unsettled_max = 10


class StartFixture:
    """The start of a pump of partition 0, which waits *wait_s* after each failed attempt."""

    def __init__(self, *, errors: Sequence[StoreError] = (), wait_s: float = 1.0) -> None:
        self.setup = Setup()
        self.source: Source = Source(self.setup.hub)
        self.checkpoints = CheckpointFixture(self.setup)
        self.checkpointer = self.checkpoints.checkpointer("a")
        self.stop = StopScope(lambda: inf)
        self.attempts: list[int] = []
        self.reported: list[tuple[StoreError, int]] = []
        self._errors = [*errors]
        self._pause_s = wait_s

    async def stored(self, number: int, state: bytes | None = None, **fields: Any) -> None:
        """Store a checkpoint, as a former owner does."""
        await self.checkpoints.store.open()
        await self.checkpoints.store_by("b/1/1", number, state=state, **fields)

    async def begin(self, initial_position: EventPosition | None = None) -> EventPosition:
        """Start."""
        await self.checkpoints.store.open()
        await self.source.open()
        reading = Reading(self.setup, self.source, stop=self.stop)
        self.reader = reading.reader
        self._fail_next()
        initial_position = initial_position or EventPosition.earliest()
        return await find_start(
            self.checkpoints.adoption(
                self.checkpointer,
                is_from_first=initial_position.is_earliest,
                hub_created_at=lambda: self.source.created_at,
                stop=self.stop,
                wait_s=self._wait_s,
                report=self._report,
            ),
            checkpointer=self.checkpointer,
            reader=self.reader,
            scope=PartitionScope(
                identity=PartitionIdentity(partition_id="0", group=self.setup.group, owner_id="a"),
                stop=self.stop,
                counters=DeliveryCounters(),
                log=get_logger("eventproc.test"),
            ),
            initial_position=initial_position,
        )

    def end(self) -> None:
        """Stop the pump."""
        self.stop.end(CloseReason.SHUTDOWN, call_budget=timedelta(seconds=9))

    def _fail_next(self) -> None:
        self.checkpoints.read_error = self._errors.pop(0) if self._errors else None

    def _wait_s(self, attempt: int) -> float:
        self.attempts.append(attempt)
        self._fail_next()
        return self._pause_s

    async def _report(self, error: StoreError, count: int) -> None:
        self.reported.append((error, count))


async def test_an_adoption_is_tried_again_and_only_a_refusal_is_reported(caplog):
    """With longer and longer waits. An outage ends by itself, so no handler is told."""
    caplog.set_level(logging.DEBUG, "eventproc")

    fixture = StartFixture(errors=[NO_ANSWER, NO_ANSWER, REFUSED, REFUSED])
    await fixture.begin()

    assert (fixture.attempts, fixture.reported) == ([1, 2, 3, 4], [(REFUSED, 1), (REFUSED, 2)])
    *failed, recovered = [vars(record) for record in caplog.records]
    assert [(line["levelname"], line["event"], line["attempt"]) for line in failed] == [
        ("WARNING", "adoption_failed", 1),
        ("DEBUG", "adoption_failed", 2),
        ("ERROR", "adoption_failed", 3),
        ("DEBUG", "adoption_failed", 4),
    ]
    assert (recovered["event"], recovered["attempt_count"]) == ("adoption_recovered", 5)


@pytest.mark.parametrize("during", ["adoption", "back-off", "storing latest"])
async def test_a_stop_ends_every_wait_of_a_start_at_once(during):
    """There is nothing to store, so it does not wait for a store that does not answer."""
    errors = [NO_ANSWER] if during == "back-off" else []
    fixture = StartFixture(errors=errors, wait_s=1000)
    fixture.checkpoints.write_s = 100
    asyncio.get_running_loop().call_later(5, fixture.end)
    is_latest = during == "storing latest"
    with pytest.raises(StoppedError):
        await fixture.begin(EventPosition.latest() if is_latest else None)
    ended_s = asyncio.get_running_loop().time()
    await seconds(100)  # Until the write under way has ended.

    assert ended_s == 5


async def test_the_age_of_the_hub_is_the_one_that_is_known_at_each_attempt():
    """It may be deleted and created again during an outage of the store."""
    fixture = StartFixture(errors=[NO_ANSWER, NO_ANSWER], wait_s=60)
    await fixture.stored(5)
    starting = asyncio.ensure_future(fixture.begin())
    await seconds(30)
    fixture.setup.hub.recreate()
    await fixture.source.partition_ids()
    await seconds(120)
    fixture.end()
    with pytest.raises(StoppedError):
        await starting

    assert [type(error) for error, _ in fixture.reported] == [HubRecreatedError]


@pytest.mark.parametrize("published", [0, 1, 3])
async def test_latest_is_stored_as_the_position_that_it_means_now(published):
    """Before the first event it is a position, too: that event is not to be skipped."""
    fixture = StartFixture()
    fixture.setup.publish(published)
    newest = fixture.setup.hub.partition_properties("0")
    position = await fixture.begin(EventPosition.latest())
    stored = fixture.setup.checkpoint()
    found = stored.offset, stored.sequence_number, fixture.reader.newest_received
    offset = newest.last_enqueued_offset if published else "-1"
    expected = EventPosition.from_offset(offset, sequence_number=published - 1)

    assert position == expected
    assert found == (offset, published - 1, published - 1)


@pytest.mark.parametrize(
    ("source", "newest", "wanted"),
    [(Source, 1, [2, 5, 6]), (Queues, 9, [2, 3, 4, 5, 6, 7, 8, 9])],
    ids=["hub", "queue"],
)
async def test_completed_events_are_left_out_unless_the_source_is_a_queue(source, newest, wanted):
    """A queue does not deliver them again, and may give their numbers to no other messages."""
    fixture = StartFixture()
    fixture.source = source(fixture.setup.hub)
    await fixture.stored(1, completed=(SequenceRange(3, 4), SequenceRange(7, 9)))
    await fixture.begin()
    admitted = fixture.checkpointer.progress.admit(events(range(2, 10)))

    assert (fixture.reader.newest_received, numbers(admitted)) == (newest, wanted)


@pytest.mark.parametrize(
    ("writes", "warned"),
    [
        ([(1, b"2")], []),
        ([(4, None)], []),
        ([(1, b"2"), (4, None)], [(4, 1)]),
    ],
    ids=["of its position", "without a state", "of another position"],
)
async def test_a_state_of_another_position_is_warned_of(caplog, writes, warned):
    """A processor of an Azure SDK moves the checkpoint and leaves the state as it was."""
    fixture = StartFixture()
    for number, state in writes:
        await fixture.stored(number, state)
    await fixture.begin()

    lines = [vars(record) for record in caplog.records]

    assert {line["event"] for line in lines} <= {"state_position_mismatched"}
    assert [(line["sequence_number"], line["state_sequence_number"]) for line in lines] == warned


async def test_an_offset_of_another_protocol_ends_the_pump_as_a_failure_of_its_source():
    """The source would read a different event there."""
    fixture = StartFixture()
    await fixture.stored(5, offset="kafka:5")
    with pytest.raises(PartitionStoppedError) as raised:
        await fixture.begin()

    assert raised.value.reason is CloseReason.SOURCE_FAILED
