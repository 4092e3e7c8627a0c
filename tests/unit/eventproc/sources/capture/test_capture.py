"""From files into the hub: order, overlap, gaps, late and damaged files, and what is listed."""

import asyncio
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from eventproc.errors import (
    ConfigurationError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.models import EventPosition, OffsetFormat
from eventproc.sources.capture import CapturedHub, FolderCaptureFiles
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from tests.servers.capture import NOON, MemoryCaptureFiles

EARLIEST = EventPosition.earliest()
MINUTE = timedelta(minutes=1)


class History:
    """A hub of one partition whose events are enqueued a second apart, and its files."""

    def __init__(self, **settings):
        self.now = NOON
        self.hub = MemoryHub(1, clock=lambda: self.now)
        self.files = MemoryCaptureFiles(**settings)
        self.events = []

    def publish(self, count):
        for _ in range(count):
            self.now += timedelta(seconds=1)
            self.events.append(self.hub.publish(b"%d" % len(self.events), partition_id="0")[1])

    def capture(self, first, end, *, at=None, **options):
        """Write a file with these events; return its name."""
        events = self.events[first:end]
        at = at or NOON + timedelta(seconds=end, days=end // 100)
        return self.files.add("0", events, at=at, **options)

    def expire(self, before):
        self.hub.trim("0", before=before)

    def source(self, **settings):
        return CapturedHub(MemoryEventSource(self.hub), self.files, **settings)


def captured(count=300, *, kept=20, each=50, overlap=0, **settings):
    """Return a hub that keeps its newest events, and whose files have all but the last ten."""
    history = History(**settings)
    history.publish(count)
    for first in range(0, count - 10, each):
        history.capture(max(0, first - overlap), min(first + each, count - 10))
    history.expire(count - kept)
    return history


@asynccontextmanager
async def reading(history, position=EARLIEST, **settings):
    async with history.source(**settings) as source:
        yield await source.open_receiver("$Default", "0", position)


async def numbers(receiver, *, events_max=33):
    """Return the numbers of all events that come."""
    found: list[int] = []
    while not found or found[-1] < receiver.last_enqueued.sequence_number:
        events = await receiver.receive(events_max=events_max, wait_max=MINUTE)
        found += [event.sequence_number for event in events]
    assert not await receiver.receive(events_max=events_max, wait_max=timedelta(0))
    return found


async def read(history, position=EARLIEST, **settings):
    async with reading(history, position, **settings) as receiver:
        return await numbers(receiver)


@pytest.mark.parametrize("codec", ["null", "deflate"])
async def test_each_event_comes_once_from_the_first_file_to_the_newest_in_the_hub(codec):
    history = History()
    history.publish(300)
    for first in range(0, 290, 50):
        history.capture(first, min(first + 50, 290), codec=codec, block_bytes=300)
    history.expire(280)

    assert await read(history) == list(range(300))


async def test_events_that_files_have_twice_come_once():
    assert await read(captured(overlap=7)) == list(range(300))


@pytest.mark.parametrize("first", [*range(45, 56), 279, 280, 281, 299])
async def test_a_number_continues_at_its_event_in_a_file_at_the_seam_and_in_the_hub(first):
    position = EventPosition.from_sequence_number(first, is_inclusive=True)

    assert await read(captured(), position) == list(range(first, 300))


async def test_a_position_that_the_hub_has_is_read_without_files():
    history = captured()

    assert await read(history, EventPosition.from_sequence_number(285)) == list(range(286, 300))
    assert not history.files.listed


@pytest.mark.parametrize("second", [1, 49, 50, 51, 120, 275, 289, 290, 291, 299])
async def test_a_time_begins_at_the_first_event_that_was_enqueued_then(second):
    time = NOON + timedelta(seconds=second)

    found = await read(captured(), EventPosition.from_enqueued_time(time))

    assert found == list(range(second - 1, 300))


@pytest.mark.parametrize("number", [0, 49, 50, 150, 288, 295])
async def test_an_offset_alone_is_found_in_the_files(number):
    history = captured()
    offset = history.events[number].offset

    assert await read(history, EventPosition.from_offset(offset)) == list(range(number + 1, 300))


async def test_latest_begins_in_the_hub():
    history = captured()
    async with reading(history, EventPosition.latest()) as receiver:
        history.publish(1)

        assert await numbers(receiver) == [300]


async def test_a_file_that_arrives_while_others_are_read_is_found():
    history = History()
    history.publish(20_000)
    history.capture(0, 15_000, at=NOON)
    history.capture(15_000, 18_000, at=NOON + MINUTE)
    history.expire(19_000)
    async with reading(history) as receiver:
        first = await receiver.receive(events_max=10, wait_max=MINUTE)
        history.capture(18_000, 19_500, at=NOON + 2 * MINUTE)
        rest = await numbers(receiver, events_max=5000)

    assert [event.sequence_number for event in first] + rest == list(range(20_000))


async def test_a_gap_before_the_hub_is_an_error_with_numbers_and_remedies():
    history = captured(kept=5)
    async with reading(history) as receiver:
        with pytest.raises(SourceRejectedError) as raised:
            await numbers(receiver)

    message = str(raised.value)
    assert "events 290 to 294 of partition 0 are lost" in message
    assert "the hub begins at 295" in message
    assert "skips_lost" in message
    assert "eventproc checkpoints reset" in message


async def test_events_before_a_gap_come_and_a_file_that_is_late_closes_it():
    history = captured(kept=5)
    async with history.source() as source:
        receiver = await source.open_receiver("$Default", "0", EARLIEST)
        events = await receiver.receive(events_max=1000, wait_max=MINUTE)
        found = [event.sequence_number for event in events]
        with pytest.raises(SourceRejectedError):
            found += await numbers(receiver)
        history.capture(285, 297)
        position = EventPosition.from_sequence_number(found[-1])
        receiver = await source.open_receiver("$Default", "0", position)
        found += await numbers(receiver)

    assert found == list(range(300))


async def test_a_gap_between_files_names_the_file_after_it():
    history = captured()
    del history.files.content[sorted(history.files.content)[2]]
    async with reading(history) as receiver:
        with pytest.raises(SourceRejectedError, match=r"events 100 to 149 .* goes on with 150"):
            await numbers(receiver)


def gapped(kept):
    """Return a hub that keeps its newest events, with files of 0 to 99 and of 150 to 289."""
    history = History()
    history.publish(300)
    history.capture(0, 100)
    history.capture(150, 290)
    history.expire(300 - kept)
    return history


def time_of(number):
    return EventPosition.from_enqueued_time(NOON + timedelta(seconds=number + 1))


def offset_of(history, number):
    return EventPosition.from_offset(history.events[number].offset)


async def test_a_gap_at_the_position_is_an_error_for_a_time_and_an_offset_too():
    """Which of these events the position means is not known: a file may be late."""
    history = gapped(kept=5)
    positions = [time_of(120), offset_of(history, 99)]
    for position in positions:
        with pytest.raises(SourceRejectedError, match="events 100 to 149 of partition 0 are lost"):
            await read(history, position)
    history.capture(100, 150)
    found = []
    for position in positions:
        async with reading(history, position) as receiver:
            events = await receiver.receive(events_max=1, wait_max=MINUTE)
            found += [event.sequence_number for event in events]

    assert found == [120, 100]


async def test_a_gap_at_the_position_that_the_hub_has_is_read_there():
    history = gapped(kept=280)

    assert await read(history, time_of(120)) == list(range(120, 300))
    assert await read(history, offset_of(history, 99)) == list(range(100, 300))


async def test_a_gap_at_the_position_is_left_out_if_that_is_wanted():
    found = await read(gapped(kept=5), time_of(120), skips_lost=True)

    assert found == [*range(150, 290), *range(295, 300)]


async def test_a_time_after_the_last_file_is_an_error_if_the_hub_may_have_lost_some():
    with pytest.raises(SourceRejectedError, match="events 290 to 294 of partition 0 are lost"):
        await read(gapped(kept=5), time_of(292))


async def test_a_time_that_the_hub_has_is_read_there_whatever_it_lost_before():
    assert await read(gapped(kept=5), time_of(297)) == [297, 298, 299]


async def test_a_gap_between_files_that_the_hub_has_is_read_there():
    history = captured(kept=220)
    del history.files.content[sorted(history.files.content)[2]]

    assert await read(history) == list(range(300))


async def test_lost_events_are_left_out_if_that_is_wanted_and_the_receiver_says_from_where():
    history = captured(kept=5)
    del history.files.content[sorted(history.files.content)[2]]
    found: list[int] = []
    lowest = []
    async with reading(history, skips_lost=True) as receiver:
        while not found or found[-1] < 299:
            events = await receiver.receive(events_max=1000, wait_max=MINUTE)
            found += [event.sequence_number for event in events]
            lowest.append(receiver.first_sequence_number)

    assert found == [*range(100), *range(150, 290), *range(295, 300)]
    assert [lowest[0], lowest[-1]] == [None, 295]
    assert 150 in lowest


async def test_a_gap_that_comes_later_is_looked_for_in_files_again():
    """Losses are accepted, and these events may be in a file that is written just now."""
    history = captured(kept=5)
    async with reading(history, skips_lost=True) as receiver:
        await numbers(receiver)
        history.publish(50)
        history.expire(340)
        with pytest.raises(SourceUnavailableError, match="looked for in Capture files"):
            await receiver.receive(events_max=10, wait_max=MINUTE)


@pytest.mark.parametrize("damage", ["cut", "empty"])
async def test_a_damaged_file_is_named_after_the_events_before_it(damage):
    history = captured()
    name = sorted(history.files.content)[1]
    history.files.content[name] = history.files.content[name][:-40] if damage == "cut" else b""
    async with reading(history) as receiver:
        events = await receiver.receive(events_max=50, wait_max=MINUTE)
        with pytest.raises(SourceRejectedError, match=name):
            await numbers(receiver)

    assert [event.sequence_number for event in events] == list(range(50))


@pytest.mark.parametrize(
    ("damaged", "first", "expected"),
    [
        (50, 160, range(160, 300)),
        (50, 110, range(110, 300)),
        (150, 110, range(110, 150)),
        (0, 110, range(110, 300)),
        (0, 10, range(0)),
    ],
)
async def test_a_damaged_file_is_an_error_only_for_what_it_has(damaged, first, expected):
    """The search for the position passes it over."""
    history = History()
    history.publish(300)
    for begin in range(0, 300, 50):
        name = history.capture(begin, begin + 50)
        if begin == damaged:
            history.files.content[name] = history.files.content[name][:700]
    history.expire(290)
    found: list[int] = []
    position = EventPosition.from_sequence_number(first, is_inclusive=True)
    with suppress(SourceRejectedError):
        async with reading(history, position) as receiver:
            while not found or found[-1] < 299:
                events = await receiver.receive(events_max=33, wait_max=MINUTE)
                found += [event.sequence_number for event in events]

    assert found == list(expected)


@pytest.mark.parametrize(
    "position", [EARLIEST, EventPosition.from_enqueued_time(NOON)], ids=["earliest", "time"]
)
async def test_a_damaged_first_file_is_an_error_for_whoever_begins_with_it(position):
    """Otherwise its events would be left out without a word."""
    history = captured()
    name = min(history.files.content)
    history.files.content[name] = b""
    with pytest.raises(SourceRejectedError, match=name):
        await read(history, position)


async def test_a_damaged_first_file_hides_neither_the_hub_nor_the_other_files():
    """Whoever asks where a partition begins and ends reads none of its events."""
    history = captured()
    history.files.content[min(history.files.content)] = b""
    async with history.source() as source:
        found = await source.partition_properties("0")

    assert (found.beginning_sequence_number, found.last_enqueued_sequence_number) == (50, 299)


@pytest.mark.parametrize(("is_inclusive", "first"), [(True, 100), (False, 101)])
async def test_a_time_is_inclusive_in_files_as_it_is_in_the_hub(is_inclusive, first):
    history = captured()
    time = history.events[100].enqueued_time
    position = EventPosition(enqueued_time=time, is_inclusive=is_inclusive)

    assert (await read(history, position))[0] == first


@pytest.mark.parametrize("fails_in", ["open", "close"])
async def test_files_are_closed_although_the_hub_does_not_open_or_close(fails_in):
    """Each failed start would leave a connection open."""
    history, closed = captured(), list[str]()

    async def close():
        closed.append("files")

    class Failing(MemoryEventSource):
        async def open(self):
            if fails_in == "open":
                raise SourceUnavailableError("no answer")
            await super().open()

        async def close(self):
            raise SourceUnavailableError("no answer")

    history.files.close = close
    with pytest.raises(SourceUnavailableError):
        async with CapturedHub(Failing(history.hub), history.files):
            pass

    assert closed == ["files"]


async def test_files_without_events_are_passed_over_and_one_of_them_is_read():
    history = captured()
    for minute in range(100):
        history.files.add("0", [], at=NOON - MINUTE * (200 - minute))
    for minute in range(100):
        history.files.add("0", [], at=NOON + timedelta(days=1, minutes=minute))

    assert await read(history) == list(range(300))
    assert sum("05/10/0" in name for name in history.files.read_names) <= 1


def startswith(prefix):
    return lambda name: name.startswith(prefix)


async def test_only_days_of_the_partition_are_listed():
    history = captured(2000, each=25)
    history.files.add("7", history.events[:5], at=NOON)
    position = EventPosition.from_sequence_number(1900)
    async with reading(history, position) as receiver:
        await receiver.receive(events_max=1, wait_max=MINUTE)
        listed = history.files.listed

    assert all(prefix.startswith("memory/hub/0/") for prefix in listed)
    with_files = {
        prefix for prefix in listed if any(map(startswith(prefix), history.files.content))
    }
    assert len(with_files) < 12  # of twenty days, which are bisected
    assert len(set(listed)) < 200  # months without files are passed over


async def test_a_position_before_the_first_file_is_an_error_unless_losses_are_accepted():
    history = captured()
    del history.files.content[min(history.files.content)]
    position = EventPosition.from_sequence_number(7)
    async with history.source() as source:
        with pytest.raises(SourceRejectedError, match=r"events 8 to 49 .* files begin with 50"):
            await source.open_receiver("$Default", "0", position)

    assert await read(history, position, skips_lost=True) == list(range(50, 300))
    assert await read(history) == list(range(50, 300))


async def test_a_file_of_a_hub_that_was_deleted_is_refused_until_a_time_is_given():
    history = captured()
    history.hub.recreate()
    history.hub.created_at = NOON + timedelta(seconds=100)
    async with history.source() as source:
        await source.partition_ids()
        history.publish(5)
        history.expire(2)
        with pytest.raises(SourceRejectedError, match="of a hub that was deleted"):
            await source.open_receiver("$Default", "0", EARLIEST)


async def test_numbers_that_begin_anew_in_later_files_are_not_taken_for_copies():
    history = captured(kept=5)
    later = NOON + timedelta(days=5)
    history.now = later
    other = MemoryHub(1, clock=lambda: history.now)
    history.files.add("0", [other.publish(b"new", partition_id="0")[1]], at=later)
    async with reading(history) as receiver:
        with pytest.raises(SourceRejectedError, match="deleted and created again"):
            await numbers(receiver)


async def test_since_leaves_older_files_out():
    history = captured(since=NOON + timedelta(days=1))

    assert await read(history) == list(range(50, 300))


async def test_since_may_be_a_time_of_any_zone():
    """There the day may be another one; the names of files have UTC."""
    history = captured(since=NOON.astimezone(timezone(timedelta(hours=14))))

    assert await read(history) == list(range(300))


async def test_retention_that_overtakes_the_link_is_noticed_and_files_are_looked_at():
    history = captured()
    async with history.source() as source:
        position = EventPosition.from_sequence_number(285)
        receiver = await source.open_receiver("$Default", "0", position)
        history.publish(50)
        history.capture(280, 345)
        history.expire(340)
        with pytest.raises(SourceUnavailableError, match="looked for in Capture files"):
            await receiver.receive(events_max=10, wait_max=MINUTE)
        receiver = await source.open_receiver("$Default", "0", position)

        assert await numbers(receiver) == list(range(286, 350))


async def test_cancelled_calls_lose_no_event():
    history = captured()
    found = []
    async with reading(history) as receiver:
        for turn in range(90):
            call = asyncio.create_task(receiver.receive(events_max=3, wait_max=MINUTE))
            for _ in range(turn % 7):
                await asyncio.sleep(0)
            call.cancel()
            with suppress(asyncio.CancelledError):
                found += [event.sequence_number for event in await call]
        found += await numbers(receiver)

    assert found == list(range(300))


async def test_a_call_that_is_cancelled_while_the_hub_is_asked_about_a_gap_loses_no_event():
    """The events after the gap were received already, and only the answer was waited for."""
    history, asked = captured(kept=5), asyncio.Event()

    class SilentOnceRead(MemoryEventSource):
        is_silent = False

        async def open_receiver(self, *place):
            self.is_silent = True
            return await super().open_receiver(*place)

        async def partition_properties(self, partition_id):
            if self.is_silent:
                asked.set()
                await asyncio.Event().wait()
            return await super().partition_properties(partition_id)

    live = SilentOnceRead(history.hub)
    async with CapturedHub(live, history.files, skips_lost=True) as source:
        receiver = await source.open_receiver("$Default", "0", EARLIEST)
        found: list[int] = []
        while not found or found[-1] < 289:
            events = await receiver.receive(events_max=50, wait_max=MINUTE)
            found += [event.sequence_number for event in events]
        call = asyncio.create_task(receiver.receive(events_max=3, wait_max=MINUTE))
        await asked.wait()
        call.cancel()
        await asyncio.wait([call])
        live.is_silent = False

        assert call.cancelled()
        assert found + await numbers(receiver) == [*range(290), *range(295, 300)]


async def test_a_receiver_that_is_closed_leaves_no_link_to_the_hub_open():
    history, links = captured(), list[Any]()

    class Noting(MemoryEventSource):
        async def open_receiver(self, *place):
            links.append(await super().open_receiver(*place))
            return links[-1]

    async with CapturedHub(Noting(history.hub), history.files) as source:
        receiver = await source.open_receiver("$Default", "0", EARLIEST)
        await numbers(receiver)
        await receiver.close()

        assert [link.is_over for link in links] == [True]


async def test_properties_begin_with_the_files_and_end_with_the_hub():
    history = captured()
    async with history.source() as source:
        (found,) = await source.properties_of(["0"])
        history.expire(300)
        empty = await source.partition_properties("0")

    assert (found.beginning_sequence_number, found.last_enqueued_sequence_number) == (0, 299)
    assert (empty.beginning_sequence_number, empty.is_empty) == (0, False)


async def test_a_file_that_became_shorter_is_an_error_and_no_end():
    """It is tried again: a copy of the file may still be written."""
    history = captured()
    async with reading(history) as receiver:

        async def shorter(name, start, byte_count):
            return history.files.content[name][:-1][start : start + byte_count]

        history.files.read = shorter
        with pytest.raises(SourceUnavailableError, match="is shorter than before"):
            await numbers(receiver)


async def test_without_any_file_the_hub_is_read_and_a_warning_says_where_they_were_looked_for(
    caplog,
):
    history = History()
    history.publish(10)
    history.expire(4)

    assert await read(history) == list(range(4, 10))
    (record,) = [r for r in caplog.records if vars(r).get("event") == "capture_missing"]
    assert vars(record)["prefix"] == "memory/hub/0/"


async def test_a_buffer_is_bounded_while_nothing_is_received():
    history = History()
    history.publish(18_000)
    history.capture(0, 18_000, at=NOON)
    history.expire(18_000)
    async with reading(history) as receiver:
        await asyncio.sleep(1)

        assert receiver._count <= 17_000
        assert await numbers(receiver, events_max=9000) == list(range(18_000))


async def test_room_that_is_taken_is_free_again():
    """More bytes come from files than are ever read ahead."""
    history = History()
    body = bytes(1024 * 1024)
    for _ in range(40):
        history.now += timedelta(seconds=1)
        history.events.append(history.hub.publish(body, partition_id="0")[1])
    for number in range(40):
        history.capture(number, number + 1, at=history.now + timedelta(minutes=number))
    history.expire(39)

    async with asyncio.timeout(120), reading(history) as receiver:
        assert await numbers(receiver) == list(range(40))


async def test_an_unknown_partition_is_refused_by_the_hub():
    async with captured().source() as source:
        with pytest.raises(SourceError, match="77"):
            await source.open_receiver("$Default", "77", EARLIEST)


def test_a_hub_with_other_offsets_is_refused():
    class Kafka(MemoryEventSource):
        offset_format = OffsetFormat.KAFKA

    with pytest.raises(ConfigurationError, match="EventHubSource"):
        CapturedHub(Kafka(MemoryHub(1)), MemoryCaptureFiles())


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ConfigurationError, match="time zone"):
        MemoryCaptureFiles(since=datetime(2026, 1, 1))  # noqa: DTZ001


async def test_a_folder_has_files_as_a_container_does(tmp_path):
    history = captured()
    for name, data in history.files.content.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    gone = tmp_path / "memory/hub/0/2024/05/10/00.avro"
    gone.symlink_to(tmp_path / "deleted")  # As a file that is deleted while a folder is listed.
    source = CapturedHub(MemoryEventSource(history.hub), FolderCaptureFiles(tmp_path))
    async with source:
        receiver = await source.open_receiver("$Default", "0", EARLIEST)

        assert await numbers(receiver) == list(range(300))


async def test_a_folder_that_does_not_exist_is_refused(tmp_path):
    source = CapturedHub(MemoryEventSource(MemoryHub(1)), FolderCaptureFiles(tmp_path / "none"))

    with pytest.raises(ConfigurationError, match="no folder"):
        await source.open()
