"""Planned ranges over real AMQP: exactly the planned events are read, or an error is raised.

Without Spark: the code of a task is plain Python.
"""

import signal
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any

import pytest

from eventproc.errors import ReceiverDisplacedError, SourceRejectedError, SourceUnavailableError
from eventproc.models import EventPosition
from eventproc.ports import PartitionReceiver
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource
from spark_integration import EventsLostError
from spark_integration._options import SourceOptions, parse_source_options
from spark_integration._source.planning import EventRange
from spark_integration._source.reading import read_ranges
from tests.integration.spark_integration.conftest import COUNT, options_for, publish


def planned(partition_id: str, start: int, end: int) -> EventRange:
    return EventRange(partition_id=partition_id, start=start, end=end)


def numbers(options: SourceOptions, *ranges: EventRange) -> list[tuple[str, int]]:
    return [
        (partition_id, event.sequence_number)
        for partition_id, events in read_ranges(options, ranges)
        for event in events
    ]


def expected(*ranges: EventRange) -> list[tuple[str, int]]:
    return [(r.partition_id, number) for r in ranges for number in range(r.start, r.end)]


# --- exactly what was planned --------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", ["1", "7", "1000"])
def test_a_task_reads_exactly_its_ranges(own, prefetch):
    """Single events, first and last events, and several ranges of one partition."""
    ranges = [
        planned("0", 0, 1),
        planned("1", 998, 1000),
        planned("0", 5, 700),
        planned("1", 3, 4),
        planned("0", 999, 1000),
    ]

    assert numbers(options_for(own, prefetchCount=prefetch), *ranges) == expected(*ranges)
    assert own.receiver_count("orders") == 0


def test_a_task_without_ranges_reads_nothing(own):
    """Spark makes an empty task if there is none."""
    assert numbers(options_for(own)) == []


def test_a_task_that_stops_early_closes_its_receivers(own):
    """A query with a limit, for example, ends the task before its range is read."""
    reading = read_ranges(options_for(own, prefetchCount="50"), [planned("0", 0, COUNT)])
    first = list(islice(reading, 1))
    reading.close()  # type: ignore[attr-defined]

    assert first
    assert own.receiver_count("orders") == 0


def test_attempts_at_one_task_read_at_the_same_time(own):
    """Speculative attempts, for example, do not disconnect each other."""
    ranges = [planned("0", 0, COUNT), planned("1", 0, COUNT)]
    barrier = threading.Barrier(3)

    def attempt(_: int) -> list[tuple[str, int]]:
        reading = read_ranges(options_for(own, prefetchCount="20"), ranges)
        first = next(reading)
        barrier.wait(60)  # all of them are in the middle
        read = [(first[0], event.sequence_number) for event in first[1]]
        return read + [(p, event.sequence_number) for p, events in reading for event in events]

    with ThreadPoolExecutor() as pool:
        attempts = list(pool.map(attempt, range(3)))

    assert attempts == [expected(*ranges)] * 3


def test_readers_above_the_limit_of_the_service_wait(own):
    """Five may read one partition; the pieces of a divided range may be more."""
    pieces = [planned("0", begin, begin + 50) for begin in range(0, 400, 50)]
    options = options_for(own, prefetchCount="10")
    barrier = threading.Barrier(len(pieces))

    def read(piece: EventRange) -> list[tuple[str, int]]:
        barrier.wait(60)
        return numbers(options, piece)

    with ThreadPoolExecutor(len(pieces)) as pool:
        found = list(pool.map(read, pieces))

    assert found == [expected(piece) for piece in pieces]


def test_events_near_the_size_limit_are_read(own):
    """Near the service's limit of a megabyte."""
    body = bytes(range(256)) * 3900
    publish(own, "2", *[body] * 4, batch=1)
    chunks = read_ranges(options_for(own), [planned("2", 0, 4)])

    assert [event.body for _, events in chunks for event in events] == [body] * 4


class EarlySource(EventHubSource):
    """Begins before the position, as a receiver may; keeps the set of open receivers."""

    connection = ""

    def __init__(self, *given: Any, **options: Any) -> None:
        """Take the arguments of the parent class."""
        super().__init__(*given, **options)
        self.open_receivers: set[PartitionReceiver] = set()

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        """Open at the oldest event."""
        earliest = EventPosition.earliest()
        receiver = await super().open_receiver(consumer_group, partition_id, earliest)
        self.open_receivers.add(receiver)
        close = receiver.close

        async def close_and_note() -> None:
            await close()
            self.open_receivers.discard(receiver)

        receiver.close = close_and_note  # type: ignore[method-assign]
        return receiver


def make_early(options: EventHubOptions) -> EventHubSource:
    """Make an ``EarlySource``; a recipe."""
    return EarlySource.from_connection_string(EarlySource.connection, options=options)


def test_events_before_the_range_are_skipped(own, monkeypatch):
    """With a source whose receivers begin before the position."""
    monkeypatch.setattr(EarlySource, "connection", own.connection_string_for("orders"))
    options = parse_source_options({"sourceRecipe": f"{__name__}:make_early"}, is_stream=True)

    assert numbers(options, planned("0", 300, 310)) == expected(planned("0", 300, 310))


steps: list[str] = []


@asynccontextmanager
async def make_with_credential(options: EventHubOptions) -> AsyncIterator[EventHubSource]:
    """Make a source with a credential that must be closed."""
    steps.append("opened")
    async with EarlySource.from_connection_string(
        EarlySource.connection, options=options
    ) as source:
        yield source
        steps.append(f"{len(source.open_receivers)} receivers open")
    steps.append("closed")


@pytest.mark.parametrize("stops_early", [False, True])
def test_a_source_made_by_a_recipe_is_closed_when_the_task_ends(own, monkeypatch, stops_early):
    """Spark's Python process runs other tasks afterwards, also after an early stop."""
    monkeypatch.setattr(EarlySource, "connection", own.connection_string_for("orders"))
    steps.clear()
    recipe = f"{__name__}:make_with_credential"
    options = parse_source_options({"sourceRecipe": recipe}, is_stream=True)
    reading = read_ranges(options, [planned("0", 0, 10), planned("1", 0, 10)])
    next(reading)
    if stops_early:
        reading.close()  # type: ignore[attr-defined]
    else:
        list(reading)

    assert steps == ["opened", "0 receivers open", "closed"]


def test_signal_handlers_are_set_once_for_a_task(own, monkeypatch):
    """``asyncio.Runner.run`` sets one each time, which costs more than decoding a chunk."""
    calls = []
    set_handler = signal.signal

    def counting(*arguments):
        calls.append(arguments)
        return set_handler(*arguments)

    monkeypatch.setattr(signal, "signal", counting)
    options = options_for(own)
    counts = []
    for end in (1, COUNT):
        calls.clear()
        numbers(options, planned("0", 0, end))
        counts.append(len(calls))

    assert counts[0] == counts[1]


def test_tasks_do_not_track_the_last_enqueued_event(own):
    """Their ends are known; last-enqueued properties would cost 150 bytes for each event."""
    assert not options_for(own).hub_options().tracks_last_enqueued


# --- outage -------------------------------------------------------------------------------------


def test_a_receiver_that_broke_is_reopened_after_the_last_event(own):
    """A connection that is dropped in the middle of a range, twice, loses and repeats no event."""
    reading = read_ranges(options_for(own, prefetchCount="100"), [planned("0", 0, COUNT)])
    found: list[int] = []
    for count, (_, events) in enumerate(reading):
        found += [event.sequence_number for event in events]
        if count in {1, 3}:
            own.drop_connections("orders")

    assert found == list(range(COUNT))


def test_an_outage_shorter_than_operation_timeout_is_waited_for(own):
    """The service restarts, and the task continues."""
    reading = read_ranges(options_for(own, prefetchCount="100"), [planned("0", 0, COUNT)])
    found = [event.sequence_number for event in next(reading)[1]]
    own.stop()
    timer = threading.Timer(0.6, own.start)
    timer.start()
    found += [event.sequence_number for _, events in reading for event in events]
    timer.join()

    assert found == list(range(COUNT))


def test_an_outage_longer_than_operation_timeout_is_an_error(own):
    """The task fails, and the message names the range; a retry reads the range again."""
    options = options_for(own, operationTimeout="300ms", prefetchCount="100")
    reading = read_ranges(options, [planned("0", 0, COUNT + 1)])
    next(reading)  # All but the last one, which is not there yet.
    own.stop()
    back = threading.Timer(15, own.start)  # A task that waits for ever gets events, and no error.
    back.start()
    with pytest.raises(SourceUnavailableError, match=r"events 0 to 1,?000 .*operationTimeout"):
        list(reading)
    back.cancel()
    own.start()

    assert numbers(options, planned("0", 0, COUNT)) == expected(planned("0", 0, COUNT))


def test_a_silent_link_is_reopened_after_receiver_timeout(own, monkeypatch):
    """The connection is up but no event comes: check the partition, and reopen the receiver.

    Direct path only: by Azure's public methods, opening takes longer than the time-out here.
    """
    monkeypatch.setenv("EVENTPROC_RECEIVE_PATH", "direct")
    options = options_for(own, receiverTimeout="200ms", prefetchCount="100")
    reading = read_ranges(options, [planned("0", 0, COUNT)])
    found = [event.sequence_number for event in next(reading)[1]]
    own.fall_silent(timedelta(seconds=1))
    found += [event.sequence_number for _, events in reading for event in events]

    assert found == list(range(COUNT))


async def test_a_running_processor_in_the_group_is_named_as_the_reason(own, monkeypatch):
    """Its exclusive receivers are not disconnected; the error tells to use another group.

    Direct path only: Azure's public methods do not report a refused link.
    """
    monkeypatch.setenv("EVENTPROC_RECEIVE_PATH", "direct")
    connection = own.connection_string_for("orders")
    async with EventHubSource.from_connection_string(connection) as source:
        receiver = await source.open_receiver("$Default", "0", EventPosition.earliest())
        options = options_for(own, operationTimeout="300ms")

        def read() -> str:
            with pytest.raises(SourceUnavailableError) as failed:
                numbers(options, planned("0", 0, 10))
            return str(failed.value)

        with ThreadPoolExecutor() as pool:
            message = pool.submit(read).result()
        events = await receiver.receive(events_max=5, wait_max=timedelta(seconds=5))

    assert "consumer group of its own" in message
    assert len(events) > 0


async def test_an_exclusive_receiver_steals_the_link_of_a_processor(own, monkeypatch):
    """On request only. By Azure's public methods a receiver is there before its link is."""
    monkeypatch.setenv("EVENTPROC_RECEIVE_PATH", "direct")
    options = options_for(own, useExclusiveReceiver="true")
    connection = own.connection_string_for("orders")
    async with EventHubSource.from_connection_string(connection) as source:
        receiver = await source.open_receiver("$Default", "0", EventPosition.latest())
        with ThreadPoolExecutor() as pool:
            found = pool.submit(numbers, options, planned("0", 0, 10)).result()
        with pytest.raises(ReceiverDisplacedError):
            await receiver.receive(events_max=5, wait_max=timedelta(seconds=5))

    assert found == expected(planned("0", 0, 10))


# --- retention -----------------------------------------------------------------------------------


def test_deleted_events_are_an_error(own):
    """The message names the events and the option that skips them."""
    own.expire_before("orders", "0", 40)

    with pytest.raises(EventsLostError, match=r"events 10 to 39 of partition '0'.*failOnDataLoss"):
        numbers(options_for(own), planned("0", 10, 60))


def test_deleted_events_are_skipped_and_logged_on_request(own, caplog):
    """With ``failOnDataLoss=false`` the rest of the range is read."""
    own.expire_before("orders", "0", 40)
    options = options_for(own, failOnDataLoss="false")

    assert numbers(options, planned("0", 10, 60)) == expected(planned("0", 40, 60))
    (record,) = [r for r in caplog.records if vars(r).get("event") == "planned_events_missing"]
    assert (record.after_sequence_number, record.missing_count) == (9, 30)


@pytest.mark.parametrize("oldest", [60, 1000])
def test_a_range_without_remaining_events_ends(own, oldest):
    """Whether newer events follow or the partition is empty."""
    own.expire_before("orders", "0", oldest)
    strict = options_for(own, receiverTimeout="200ms", operationTimeout="5s")
    lenient = replace(strict, fails_on_data_loss=False)

    assert numbers(lenient, planned("0", 10, 60)) == []
    with pytest.raises(EventsLostError, match="events 10 to 59"):
        numbers(strict, planned("0", 10, 60))


def test_a_hub_that_ends_before_the_range_is_refused(own):
    """The hub was created again; waiting for its events would mix two hubs."""
    options = options_for(
        own, receiverTimeout="200ms", operationTimeout="5s", failOnDataLoss="false"
    )

    with pytest.raises(SourceRejectedError, match="created again"):
        numbers(options, planned("0", COUNT - 1, COUNT + 10))


def test_an_unknown_partition_is_refused_at_once(own):
    """The task raises ``SourceRejectedError`` without a retry."""
    with pytest.raises(SourceRejectedError):
        numbers(options_for(own), planned("17", 0, 5))


def test_receivers_of_a_processor_are_exclusive_by_default():
    """The option of Spark does not change the default of the library."""
    assert EventHubOptions().is_exclusive
