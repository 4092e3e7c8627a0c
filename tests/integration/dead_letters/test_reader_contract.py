"""What every reader of dead letters does, on real storage, hubs and brokers."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import ConfigurationError
from eventproc.dead_letters import matching
from eventproc.dead_letters.blob import _AT_ONCE_MAX, BlobDeadLetterReader, BlobDeadLetterSink
from eventproc.emulator import EventHubsEmulator
from eventproc.errors import StoreRejectedError
from eventproc.models import KAFKA_KEY, KAFKA_TOMBSTONE, REPLAYED_FROM, StoredLetter
from eventproc.sources.eventhubs import EventHubDeadLetterReader, EventHubSource
from eventproc.sources.rabbitmq import RabbitDeadLetterReader
from tests.integration.dead_letters.places import (
    GROUP,
    NOON,
    BlobPlace,
    HubPlace,
    QueuePlace,
    letter,
)


def ids(found: list[StoredLetter]) -> list[tuple[str, int]]:
    """Return partition and number of each letter."""
    letters = [stored.letter for stored in found]
    return [(each.partition_id, each.event.sequence_number) for each in letters if each]


async def read(place) -> list[StoredLetter]:
    """Return what a new reader finds."""
    async with place.opened() as reader:
        return await matching(reader)


async def test_letters_are_read_as_they_were_stored(place):
    """With everything that is needed to replay the event, and what an operator wants to know."""
    stored = [letter(1), letter(2), letter(3, partition_id="0")]
    await place.store(stored)
    found = [each.letter for each in await read(place)]

    assert found == [stored[2], stored[0], stored[1]]


def deep(levels: int) -> object:
    value: object = "x"
    for _ in range(levels):
        value = [value]
    return value


SURROGATE = "lone \ud800"
UNUSUAL_EVENTS: dict[str, dict[str, Any]] = {
    "as large as a hub allows": {"body": b"\xff" * 1024 * 1024},
    "no number": {"properties": {"a": Decimal("NaN"), "b": float("nan"), "c": float("inf")}},
    "an integer of 70 bits": {"properties": {"a": 2**70}},
    "an id, a map and a list": {"properties": {"a": UUID(int=5), "b": {"c": [1]}, "d": {7}}},
    "nested values": {"properties": {"a": deep(40)}},
    "a surrogate in a property": {"properties": {SURROGATE: SURROGATE}},
    "a surrogate in the key": {"partition_key": SURROGATE},
    "a surrogate in the ids": {"message_id": SURROGATE, "correlation_id": SURROGATE},
    "a long id": {"message_id": "m" * 300},
}


@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
@pytest.mark.parametrize("kind", UNUSUAL_EVENTS)
async def test_an_event_of_any_kind_is_stored_and_read(place, kind):
    """Otherwise its partition would wait for ever. What a place cannot have, it has as JSON."""
    plain = letter(1)
    stored = replace(plain, event=replace(plain.event, **UNUSUAL_EVENTS[kind]))
    await place.store([stored])
    async with place.opened() as reader:
        (found,) = await matching(reader)
        assert found.letter is not None
        assert await reader.remove(found)

    assert replace(found.letter.event, properties={}) == replace(stored.event, properties={})
    assert found.letter.event.properties.keys() == stored.event.properties.keys()
    assert found.letter.error_message == stored.error_message
    assert await read(place) == []


async def test_of_many_letters_in_a_container_only_those_that_are_wanted_are_read(
    storage, container
):
    """Otherwise a list of the first few would take as long as reading all."""
    place = BlobPlace(storage, container)
    await place.store([letter(number) for number in range(100)])
    read_names: list[str] = []

    class Noting(BlobDeadLetterReader):
        async def _read(self, name):
            read_names.append(name)
            return await super()._read(name)

    async with Noting.from_connection_string(storage, container) as reader:
        found = await matching(reader, letters_max=3)

    assert ids(found) == [("2", 0), ("2", 1), ("2", 2)]
    assert len(read_names) <= _AT_ONCE_MAX


async def test_letters_of_a_partition_come_in_order(place):
    """Whatever the order in which they were stored: letters of several keys may be."""
    await place.store([letter(number) for number in (12, 3, 100, 7)])

    assert ids(await read(place)) == [("2", 3), ("2", 7), ("2", 12), ("2", 100)]


async def test_an_event_that_was_stored_twice_is_read_once(place):
    """A processor that dies between the letter and its checkpoint stores it again."""
    await place.store([letter(1), letter(2), letter(1)])
    async with place.opened() as reader:
        first, second = await matching(reader)
        removed = await reader.remove(first)

    assert (ids([first, second]), removed) == ([("2", 1), ("2", 2)], True)
    assert ids(await read(place)) == [("2", 2)]


async def test_letters_of_a_hub_and_of_its_former_life_are_different_ones(place):
    """A hub that was created again uses its sequence numbers again: removing one keeps the other.

    The later letter is stored twice, as by a processor that died before its checkpoint.
    """
    former = letter(1)
    event = replace(former.event, body=b"later", enqueued_time=NOON + timedelta(days=1))
    present = letter(1, event=event, given_up_at=NOON + timedelta(days=1))
    await place.store([former, present, present])
    async with place.opened() as reader:
        found = await matching(reader)
        removed = await reader.remove(found[0])
    left = await read(place)

    assert ([each.letter for each in found], removed) == ([former, present], True)
    assert [each.letter for each in left] == [present]


async def test_a_sink_that_may_not_read_blobs_rather_keeps_a_letter_twice(storage, container):
    """It cannot know whether the first one is of the same event."""

    class WriteOnly(BlobDeadLetterSink):
        async def _download(self, name):
            raise StoreRejectedError("the role lacks the right to read")

    async with WriteOnly.from_connection_string(storage, container) as sink:
        for _ in range(3):
            await sink.store(letter(1))

    assert ids(await read(BlobPlace(storage, container))) == [("2", 1), ("2", 1)]


async def test_a_removed_letter_stays_removed(place):
    """In any order, for another reader and another process."""
    await place.store([letter(number) for number in range(6)])
    async with place.opened() as reader:
        found = await matching(reader)
        for at in (4, 0, 1):
            assert await reader.remove(found[at])
    async with place.opened() as reader:
        found = await matching(reader)
        assert ids(found) == [("2", 2), ("2", 3), ("2", 5)]
        for each in found:
            assert await reader.remove(each)
    await place.store([letter(7)])

    assert ids(await read(place)) == [("2", 7)]


async def test_letters_that_are_stored_meanwhile_are_left_out(place):
    """Otherwise a replay whose events fail again would never end."""
    await place.store([letter(1), letter(2)])
    seen = []
    async with place.opened() as reader:
        async for stored in reader.letters():
            seen.append(stored)
            if len(seen) < 4:
                await place.store([letter(10 + len(seen))])

    assert ids(seen) == [("2", 1), ("2", 2)]
    assert len(await read(place)) == 4


async def test_a_letter_that_another_process_removed_is_not_removed_again(place):
    """So that of two replays at once, one notices the other."""
    await place.store([letter(1), letter(2)])
    async with place.opened() as reader, place.opened() as other:
        mine, theirs = await matching(reader), await matching(other)
        if place.is_exclusive:
            assert (len(mine), theirs) == (2, [])
            return
        first = await other.remove(theirs[0])
        second = await reader.remove(mine[0])

    assert (first, second) == (True, False)


@pytest.mark.parametrize(
    "place",
    ["memory", pytest.param("blob", marks=pytest.mark.smoke), "hub", "rabbitmq-classic"],
    indirect=True,
)
async def test_a_letter_that_is_stored_again_meanwhile_stays(place):
    """Its event has failed once more, after the replay had read the letter."""
    await place.store([letter(1)])
    async with place.opened() as reader:
        (found,) = await matching(reader)
        await place.store([letter(1)])
        await reader.remove(found)

    assert ids(await read(place)) == [("2", 1)]


async def test_an_empty_place_has_no_letters(place):
    """It is no error, so a program may read it at any time."""
    assert await read(place) == []


async def test_a_letter_of_a_replayed_event_names_the_letter_before(place):
    """An operator sees that its replay did not help."""
    again = letter(5)
    event = replace(again.event, system_properties={REPLAYED_FROM: "ns/orders/$default/2/1"})
    await place.store([replace(again, event=event)])
    (found,) = await read(place)
    assert found.letter is not None

    assert found.letter.event.replayed_from == "ns/orders/$default/2/1"


@pytest.mark.parametrize("raw", [b"hello", b"{}", b'{"event": {"body": 1}}', b"\xff\xfe"])
async def test_what_is_no_letter_is_reported_and_can_be_removed(fragile, raw):
    """It does not hide the letters, and its bytes are shown."""
    await fragile.store([letter(1)])
    await fragile.damage(raw)
    async with fragile.opened() as reader:
        found = await matching(reader)
        (damaged,) = [stored for stored in found if stored.letter is None]
        removed = await reader.remove(damaged)

    assert (len(found), damaged.raw, removed) == (2, raw, True)
    assert damaged.damage
    assert ids(await read(fragile)) == [("2", 1)]


async def test_a_container_that_is_missing_cannot_be_read(storage):
    """The name may be wrong: it is no empty place."""
    reader = BlobDeadLetterReader.from_connection_string(storage, "no-such-container")
    with pytest.raises(ConfigurationError, match="create it"):
        await reader.open()


async def test_a_hub_that_is_missing_cannot_be_read():
    """The name may be wrong: it is no empty place."""
    with EventHubsEmulator({"dead": 1}) as emulator:
        conn_str = emulator.connection_string_for("dead").replace("=dead", "=gone")
        reader = EventHubDeadLetterReader(EventHubSource.from_connection_string(conn_str))
        with pytest.raises(ConfigurationError, match="gone"):
            await reader.open()
        await reader.close()


async def test_a_hub_without_a_store_is_read_and_nothing_is_removed():
    """A hub deletes no single events."""
    with EventHubsEmulator({"dead": 1}) as emulator:
        await HubPlace(emulator).store([letter(1)])
        source = EventHubSource.from_connection_string(emulator.connection_string_for("dead"))
        async with EventHubDeadLetterReader(source) as reader:
            (found,) = await matching(reader)
            with pytest.raises(ConfigurationError, match="give a checkpoint store"):
                await reader.remove(found)


async def test_letters_of_a_hub_are_removed_in_any_pattern():
    """Which are left is noted as ranges above the position."""
    with EventHubsEmulator({"dead": 2}) as emulator:
        place = HubPlace(emulator)
        await place.store([letter(number) for number in range(60)])
        async with place.opened() as reader:
            for stored in (await matching(reader))[::2]:
                assert await reader.remove(stored)

        assert ids(await read(place)) == [("2", number) for number in range(1, 60, 2)]


@pytest.mark.long
async def test_a_rabbitmq_queue_that_is_missing_and_a_stream_cannot_be_read_as_one(rabbitmq):
    """A stream gives no single messages; the message says so."""
    missing = RabbitDeadLetterReader(rabbitmq.url, "nothing")
    with pytest.raises(ConfigurationError, match="nothing"):
        await missing.open()
    await missing.close()
    stream = QueuePlace(rabbitmq, **{"x-queue-type": "stream"})
    await stream.declare()
    await stream.store([letter(1)])
    reader = RabbitDeadLetterReader(rabbitmq.url, stream.queue)
    await reader.open()
    with pytest.raises(ConfigurationError, match="is a stream"):
        await matching(reader)
    await reader.close()


@pytest.mark.long
async def test_letters_of_a_rabbitmq_queue_return_to_it_in_order(rabbitmq):
    """However often they are read, and if the process that reads them dies."""
    place = QueuePlace(rabbitmq, **{"x-queue-type": "quorum"})
    await place.declare()
    await place.store([letter(number) for number in range(20)])
    for _ in range(5):
        assert ids(await read(place)) == [("2", number) for number in range(20)]


def test_a_letter_id_names_group_partition_and_number():
    """It says where the event came from."""
    assert letter(7).letter_id == f"{'/'.join(GROUP.key)}/2/7"


@pytest.fixture(name="dead_hub")
def _dead_hub() -> Iterator[EventHubsEmulator]:
    """Yield a hub for dead letters of one partition."""
    with EventHubsEmulator({"dead": 1}) as emulator:
        yield emulator


async def test_letters_of_a_hub_that_was_created_again_are_found(dead_hub):
    """What was removed from the former one says nothing of them."""
    place = HubPlace(dead_hub)
    async with MemoryCheckpointStore(MemoryAccount()) as store:
        async with place.sink() as sink:
            for number in range(3):
                await sink.store(letter(number, partition_id="0"))
        async with place.reader(store) as reader:
            for stored in await matching(reader):
                assert await reader.remove(stored)
        dead_hub.recreate_hub("dead")
        async with place.sink() as sink:
            await sink.store(letter(7, partition_id="0"))
        async with place.reader(store) as reader:
            found = await matching(reader)
            removed = [await reader.remove(stored) for stored in found]
        async with place.reader(store) as reader:
            left = await matching(reader)

    assert (ids(found), removed, left) == ([("0", 7)], [True], [])


async def test_what_a_replay_to_kafka_needs_is_kept(dead_hub):
    """A key that is no text, and that a body is none."""
    place = HubPlace(dead_hub)
    kafka = {KAFKA_KEY: b"\xff", KAFKA_TOMBSTONE: True}
    event = replace(letter(1).event, body=b"", partition_key=None, system_properties=kafka)
    async with place.sink() as sink:
        await sink.store(letter(1, event=event))
    async with MemoryCheckpointStore(MemoryAccount()) as store, place.reader(store) as reader:
        (found,) = await matching(reader)

    assert found.letter is not None
    assert found.letter.event.system_properties == kafka
