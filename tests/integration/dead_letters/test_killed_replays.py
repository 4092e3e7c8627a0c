"""Replays by processes of the command that are killed in the middle."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from textwrap import dedent

import pytest

from eventproc.emulator import EventHubsEmulator
from eventproc.models import ConsumerGroup, ReceivedEvent
from eventproc.sources.eventhubs import EventHubSource
from eventproc.sources.kafka import KafkaEventSource
from tests.integration.cli.conftest import Command
from tests.integration.dead_letters.letters import (
    HANDLER,
    KEYS,
    KILLS,
    letters_of,
    namespace_of,
    stored,
)
from tests.integration.dead_letters.places import (
    BlobPlace,
    HubPlace,
    LetterPlace,
    QueuePlace,
    letter,
)
from tests.integration.sources.kafka_topic import KafkaTopic
from tests.integration.sources.rabbitmq_queues import Queues
from tests.integration.sources.received_events import received


@pytest.fixture(name="command")
def _command(tmp_path) -> Iterator[Command]:
    """Yield a ``Command``, with a handler in its folder that notes the letters in a file."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    made = Command(tmp_path)
    yield made
    made.close()


def kill_during(command: Command, arguments: Sequence[str], env, count: Callable[[], int]) -> int:
    """Start a replay, kill it when about a third is done, and return how much was done then."""
    process = command.start(*arguments, **env)
    begun = count()
    while count() < begun + 5 and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    return count()


def check_order(bodies: Sequence[int], count: int, kills: int) -> None:
    """Check that each number came, at most one twice for each kill, and each key in order."""
    counts = Counter(bodies)
    first_of: dict[int, list[int]] = {}
    for number in dict.fromkeys(bodies):
        first_of.setdefault(number % KEYS, []).append(number)

    assert set(counts) == set(range(count))
    assert sum(counts.values()) <= count + kills
    assert all(numbers == sorted(numbers) for numbers in first_of.values())


async def replay_to_hub(
    command: Command, hubs: EventHubsEmulator, place: LetterPlace, where: Sequence[str], env, count
):
    """Store letters, replay them with two kills in between, and check what the hub has."""
    await place.store(letters_of(namespace_of(hubs), count))
    env = {"EVENTPROC_CONNECTION_STRING": hubs.connection_string, **env}
    arguments = ["dead-letters", "replay", *where, "--yes"]
    for _ in range(KILLS):
        await asyncio.to_thread(kill_during, command, arguments, env, lambda: stored(hubs))
    code, out, err = await asyncio.to_thread(command.run, *arguments, **env)

    assert (code, err) == (0, "")
    assert "replayed." in out
    code, out, _ = await asyncio.to_thread(
        command.run, "dead-letters", "list", *where, "--format", "json", **env
    )
    assert (code, json.loads(out)["count"]) == (0, 0)
    conn_str = hubs.connection_string_for("orders")
    counts = [len(hubs.events("orders", p)) for p in hubs.partition_ids("orders")]
    events = [e for part in await received(source_of(conn_str), counts) for e in part]
    check_order([int(event.body) for event in events], count, kills=KILLS)
    assert {len(set(ids_of(events, event.body))) for event in events} == {1}
    assert all(event.properties == {"kind": "order"} for event in events)


def source_of(conn_str: str) -> EventHubSource:
    """Return a source on the hub."""
    return EventHubSource.from_connection_string(conn_str)


def ids_of(events: Sequence[ReceivedEvent], body: bytes) -> list[str | None]:
    """Return the letter ids of the events with a body."""
    return [event.replayed_from for event in events if event.body == body]


async def replay_to_handler(command: Command, folder, place: LetterPlace, where, env, count):
    """Store letters, replay them through a handler with two kills, and check its journal."""
    await place.store(letters_of("ns", count))
    journal = folder / "journal"
    journal.touch()
    arguments = ["dead-letters", "replay", *where, "--yes", "--handler", "shop:Note"]

    def lines() -> list[str]:
        text: str = journal.read_text()
        return text.splitlines()

    for _ in range(KILLS):
        await asyncio.to_thread(kill_during, command, arguments, env, lambda: len(lines()))
    code, _, err = await asyncio.to_thread(command.run, *arguments, **env)

    assert (code, err) == (0, "")
    check_order([int(line.split()[0].rpartition("/")[2]) for line in lines()], count, kills=KILLS)


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.long)])
async def test_letters_of_a_container_are_replayed_to_the_hub(
    command, hubs, storage, container, count
):
    """Two replays are killed, and the third continues: one event at most came twice for each."""
    env = {"EVENTPROC_STORAGE_CONNECTION_STRING": storage}
    place = BlobPlace(storage, container)
    await replay_to_hub(command, hubs, place, [f"blob:{container}"], env, count)


@pytest.mark.long
async def test_letters_of_a_hub_are_replayed_to_the_hub_they_came_from(command, hubs):
    """What is done is in a SQLite file: the hub for dead letters keeps everything."""
    where = ["eventhub:dead", "--store", "sqlite:group.db"]
    await replay_to_hub(command, hubs, HubPlace(hubs), where, {}, 1000)


@pytest.mark.long
async def test_a_thousand_letters_of_a_container_go_through_a_handler(
    command, storage, container, tmp_path
):
    """Also with kills in between."""
    env = {"EVENTPROC_STORAGE_CONNECTION_STRING": storage}
    place = BlobPlace(storage, container)
    await replay_to_handler(command, tmp_path, place, [f"blob:{container}"], env, 1000)


@pytest.mark.long
async def test_letters_of_a_rabbitmq_queue_go_through_a_handler(command, rabbitmq, tmp_path):
    """A process that is killed gives its messages back."""
    place = QueuePlace(rabbitmq, **{"x-queue-type": "quorum"})
    await place.declare()
    env = {"EVENTPROC_CONNECTION_STRING": f"{rabbitmq.url}?queues=3"}
    await replay_to_handler(command, tmp_path, place, [f"queue:{place.queue}"], env, 1000)


@pytest.mark.long
async def test_letters_are_replayed_to_partition_queues_of_rabbitmq(command, rabbitmq):
    """Each to the queue that it came from, with its key and ids."""
    queues = Queues(rabbitmq)
    await queues.declare()
    place = QueuePlace(rabbitmq)
    await place.declare()
    source = queues.source()
    group = ConsumerGroup(
        fully_qualified_namespace=source.fully_qualified_namespace,
        eventhub_name=source.eventhub_name,
    )
    await place.store([replace(letter(number), group=group) for number in range(3)])
    env = {"EVENTPROC_CONNECTION_STRING": f"{rabbitmq.url}?queues=3"}
    code, _, err = await asyncio.to_thread(
        command.run, "dead-letters", "replay", f"queue:{place.queue}", "--yes", **env
    )
    assert (code, err) == (0, "")
    events = (await received(queues.source(), [0, 0, 3]))[2]

    assert [event.replayed_from for event in events] == [
        f"{'/'.join(group.key)}/2/{number}" for number in range(3)
    ]
    assert [event.partition_key for event in events] == ["key-0", "key-1", "key-2"]
    assert [event.message_id for event in events] == ["m-0", "m-1", "m-2"]
    assert events[0].properties == {"kind": "order", "count": 0, "raw": b"\xfe\xff", "none": None}


@pytest.mark.long
async def test_letters_are_replayed_to_a_kafka_topic(command, kafka, storage, container):
    """Each to the partition that it came from; headers are those of the publisher."""
    await asyncio.to_thread(KafkaTopic, kafka, "orders")
    servers = kafka.bootstrap_servers
    source = KafkaEventSource(servers, topic="orders")
    letters = letters_of(source.fully_qualified_namespace, 5)
    await BlobPlace(storage, container).store(letters)
    env = {
        "EVENTPROC_CONNECTION_STRING": f"kafka://{servers}",
        "EVENTPROC_STORAGE_CONNECTION_STRING": storage,
    }
    code, _, err = await asyncio.to_thread(
        command.run, "dead-letters", "replay", f"blob:{container}", "--yes", **env
    )
    assert (code, err) == (0, "")
    events = (await received(source, [0, 0, 5]))[2]

    assert [event.replayed_from for event in events] == [each.letter_id for each in letters]
    assert {json.dumps(dict(event.properties)) for event in events} == {'{"kind": "order"}'}
