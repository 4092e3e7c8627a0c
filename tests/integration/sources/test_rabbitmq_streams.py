"""Processors on streams of a real RabbitMQ broker: errors, gaps and retention."""

import asyncio
import time
from collections import Counter
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from rstream.client import Client

from eventproc import (
    ConfigurationError,
    EventPosition,
    FailureAction,
    FailurePolicy,
    PartitionHandler,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.dead_letters.memory import MemoryDeadLetterSink
from eventproc.sources.rabbitmq.streams import RabbitStreams, StreamOptions
from tests.integration.sources.processors import events_named, is_balanced, lag_of, numbered, until
from tests.integration.sources.rabbitmq_streams import StreamFleet

SOON = timedelta(seconds=10)
EARLIEST = EventPosition.earliest()
SMALL = {"x-max-length-bytes": 2_000_000, "x-stream-max-segment-size-bytes": 500_000}
"""Arguments of a stream that keeps some 20 events of 100,000 bytes."""


@pytest.fixture(name="fleet")
def _fleet(super_stream):
    return StreamFleet(super_stream)


async def read_all(receiver):
    """Receive until nothing comes any more; return the sequence numbers."""
    found = []
    while events := await receiver.receive(events_max=20, wait_max=timedelta(seconds=0.5)):
        found += [event.sequence_number for event in events]
    return found


# --- processors ----------------------------------------------------------------------------------


async def test_hand_overs_repeat_no_event(fleet):
    """A second processor joins and the first one leaves: each event is handled once, in order."""
    for partition in range(3):
        await fleet.publish(partition, *numbered(0, 30))
    first, second = fleet.processor("a"), fleet.processor("b")
    async with second:
        async with first:
            await until(lambda: is_balanced(first, second))
            await fleet.until(90)
        for partition in range(3):
            await fleet.publish(partition, *numbered(30, 40))
        await fleet.until(120)
        await until(lambda: {lag_of(second, str(number)) for number in range(3)} == {0})

    assert Counter(fleet.handled) == {
        (str(partition), body): 1 for partition in range(3) for body in numbered(0, 40)
    }
    for partition in range(3):
        own = [body for p, body in fleet.handled if p == str(partition)]
        assert own == numbered(0, 40)


async def test_keys_keep_their_order_and_an_event_that_fails_is_a_dead_letter(fleet):
    """Several keys at once; the key is a property of the message. A restart repeats nothing."""

    class Picky(PartitionHandler):
        async def process_event(self, context, event):
            if event.body == b"bad":
                raise ValueError("it is bad")
            fleet.handled.append((event.partition_key, event.body))

    async def send(bodies):
        for body in bodies:
            for key in "abc":
                await fleet.publish(0, body, headers={"customer": key})

    sink = MemoryDeadLetterSink()
    settings = {
        "sink": sink,
        "failure_policy": FailurePolicy(attempts_max=1, action=FailureAction.DEAD_LETTER),
        "key_concurrency": 4,
    }
    await send(numbered(0, 5))
    await fleet.publish(0, b"bad", headers={"customer": "a"})
    for count, later in ((15, []), (30, numbered(5, 10))):
        await send(later)
        source = fleet.hub.source(options=StreamOptions(key="property:customer"))
        async with fleet.processor("p", Picky, source=source, **settings):
            await fleet.until(count)
            await until(lambda: len(sink.letters) == 1)

    assert {key: [b for k, b in fleet.handled if k == key] for key in "abc"} == {
        key: numbered(0, 10) for key in "abc"
    }
    (letter,) = sink.letters
    assert (letter.event.body, letter.event.offset) == (b"bad", "stream:15")


async def test_the_state_of_a_stream_counts_every_event_once(fleet):
    """It is stored with the position, and restored at the next start."""
    restored, stored = [], []

    class Counting(PartitionHandler):
        async def initialize(self, context):
            restored.append(context.state)

        async def process_event(self, context, event):
            context.state = b"%d" % (int(context.state or b"0") + 1)
            fleet.handled.append((context.partition_id, event.body))

        async def close(self, context, reason):
            stored.append(context.state)

    for end in (15, 25):
        await fleet.publish(0, *numbered(0 if end == 15 else 15, end))
        async with fleet.processor("p", Counting):
            await fleet.until(end)

    assert sorted(filter(None, restored)) == [b"15"]
    assert sorted(filter(None, stored)) == [b"15", b"25"]


async def test_a_single_stream_is_one_partition(fleet):
    """Partition 0 of a hub that is named like the stream."""
    stream = fleet.hub.stream(1)
    await fleet.publish(1, b"x")
    source = RabbitStreams(fleet.hub.broker.stream_url, stream=stream)
    async with fleet.processor("a", source=source):
        await fleet.until(1)

    assert (fleet.handled, source.eventhub_name) == ([("0", b"x")], stream)


async def test_a_list_of_streams_are_partitions_too(fleet):
    """With the end of their names as partition ids; each must exist."""
    url, name = fleet.hub.broker.stream_url, fleet.hub.name
    given = [fleet.hub.stream(number) for number in (2, 0)]
    async with RabbitStreams(url, stream=name, streams=given) as source:
        assert list(await source.partition_ids()) == ["2", "0"]
    async with RabbitStreams(url, stream=name, streams=[*given, "nosuch"]) as source:
        with pytest.raises(ConfigurationError, match="no stream 'nosuch'"):
            await source.check_consumer_group("g")


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "stream", "kind", "words"),
    [
        (lambda url: url, "nosuch", ConfigurationError, "neither a super stream nor a stream"),
        (
            lambda url: url.replace("guest:guest", "anna:s3cret"),
            "x",
            ConfigurationError,
            "user name or password",
        ),
        (lambda url: f"{url}nosuch", "x", ConfigurationError, "virtual host does not exist"),
        (
            lambda url: url.replace("rabbitmq-stream", "rabbitmq-stream+tls"),
            "x",
            SourceUnavailableError,
            "TLS|SSL",
        ),
    ],
)
async def test_wrong_settings_are_errors_at_once(rabbitmq, change, stream, kind, words):
    """The message names what is wrong, but no password."""
    begun = time.monotonic()
    async with RabbitStreams(change(rabbitmq.stream_url), stream=stream) as source:
        with pytest.raises(kind, match=words) as caught:
            await source.check_consumer_group("g")

    assert "s3cret" not in str(caught.value)
    assert time.monotonic() - begun < 10


async def test_a_wrong_port_is_an_error_that_names_the_right_one(rabbitmq):
    """The port of AMQP, and one where nobody listens."""
    amqp = urlsplit(rabbitmq.url)
    for port, words in ((amqp.port, r"port of streams \(5552\)"), (1, "opens port 5552")):
        async with RabbitStreams(f"rabbitmq-stream://127.0.0.1:{port}", stream="x") as source:
            with pytest.raises(SourceUnavailableError, match=words):
                await source.partition_ids()


async def test_a_server_that_is_away_is_passed_over(fleet):
    """The next one is asked."""
    port = urlsplit(fleet.hub.broker.stream_url).port
    url = f"rabbitmq-stream://127.0.0.1:1,127.0.0.1:{port}"
    async with RabbitStreams(url, stream=fleet.hub.name, namespace="n") as source:
        assert len(await source.partition_ids()) == 3


async def test_a_deleted_stream_ends_its_receiver_and_a_new_one_refuses_the_position(fleet):
    """The new stream has fewer events than were handled: somebody has to decide."""
    await fleet.publish(0, *numbered(0, 5))
    async with fleet.hub.source() as source:
        receiver = await source.open_receiver("g", "0", EARLIEST)
        other = await source.open_receiver("g", "1", EARLIEST)
        assert await read_all(receiver) == [0, 1, 2, 3, 4]
        await fleet.hub.delete()
        with pytest.raises(SourceUnavailableError, match="not available"):
            await receiver.receive(events_max=1, wait_max=SOON)
        with pytest.raises(SourceRejectedError, match="does not exist"):
            await source.open_receiver("g", "0", EARLIEST)
        await other.close()
        await fleet.hub.create()
        with pytest.raises(SourceRejectedError, match="created again"):
            await source.open_receiver("g", "0", EventPosition.from_sequence_number(4))


# --- gaps and retention --------------------------------------------------------------------------


async def test_offsets_that_the_broker_takes_for_itself_are_no_loss(fleet, caplog):
    """Another consumer stores its offset at the broker, which takes one of the stream's."""
    url = urlsplit(fleet.hub.broker.stream_url)
    client = Client(url.hostname, url.port, frame_max=1 << 20, heartbeat=60)
    client._connection_closed_handler = lambda _: None
    await client.start()
    await client.authenticate("/", "guest", "guest")
    async with fleet.processor("a") as processor:
        for number in range(3):
            await fleet.publish(0, b"%d" % number)
            await client.store_offset(fleet.hub.stream(0), "other", number)
            await until(lambda n=number: len(fleet.events) == n + 1)
            await asyncio.sleep(0.1)
        await until(lambda: lag_of(processor, "0") == 0)
    await client.close()

    assert [event.body for event in fleet.events] == numbered(0, 3)
    assert fleet.numbers != [0, 1, 2]
    assert events_named(caplog, "events_missing") == []


async def test_a_position_that_retention_deleted_begins_at_the_oldest_event(fleet, caplog):
    """The events between are reported as missing."""
    await fleet.hub.delete()
    await fleet.hub.create(**SMALL)
    await fleet.publish(0, b"first")
    async with fleet.processor("a"):
        await fleet.until(1)
    await fleet.publish(0, *[b"x" * 100_000] * 80)
    async with fleet.hub.source() as source:
        await until_low(source, 20)
    async with fleet.processor("a"):
        await until(lambda: len(fleet.events) > 1 and fleet.numbers[-1] > 70)

    (record,) = events_named(caplog, "events_missing")
    assert vars(record)["missing_count"] == fleet.numbers[1] - 1


async def until_low(source, low):
    """Wait until retention has deleted everything before an offset."""
    async with asyncio.timeout(20):
        while (await source.partition_properties("0")).beginning_sequence_number < low:  # noqa: ASYNC110 - the broker sets no event
            await asyncio.sleep(0.05)


async def test_events_that_retention_deletes_ahead_of_a_slow_reader_are_missing(fleet):
    """They are reported as by a receiver that begins after them; reading goes on."""
    await fleet.hub.delete()
    await fleet.hub.create(**SMALL)
    await fleet.publish(0, *[b"x" * 100_000] * 10)
    slow = StreamOptions(prefetch=3, prefetch_bytes=200_000)
    async with fleet.hub.source(options=slow) as source:
        receiver = await source.open_receiver("g", "0", EARLIEST)
        await receiver.receive(events_max=1, wait_max=SOON)
        begun_at = receiver.first_sequence_number
        await fleet.publish(0, *[b"x" * 100_000] * 100)
        await until_low(source, 60)
        found: list[tuple[int | None, int]] = []
        while not found or found[-1][0] == begun_at:
            events = await receiver.receive(events_max=20, wait_max=SOON)
            assert events
            first = receiver.first_sequence_number
            found += [(first, event.sequence_number) for event in events]
    before = [number for first, number in found if first == begun_at]
    first, number = found[len(before)]

    assert begun_at == 0
    assert max(before) < 20
    assert first == number
    assert number >= 60


# --- limits --------------------------------------------------------------------------------------


async def test_a_slow_consumer_limits_what_is_prefetched(fleet):
    """Its partition waits at ``prefetch`` events; another partition is not affected."""
    await fleet.publish(0, *numbered(0, 1_500))
    await fleet.publish(1, b"other")
    async with fleet.hub.source(options=StreamOptions(prefetch=300)) as source:
        slow = await source.open_receiver("g", "0", EARLIEST)
        other = await source.open_receiver("g", "1", EARLIEST)
        assert [e.body for e in await other.receive(events_max=9, wait_max=SOON)] == [b"other"]
        events = list(await slow.receive(events_max=10, wait_max=SOON))
        held = []
        while len(events) < 1_500:
            await asyncio.sleep(0.005)
            held.append(slow._feed.credit.held_events)
            events += await slow.receive(events_max=100, wait_max=SOON)

    assert max(held) <= 300
    assert [event.body for event in events] == numbered(0, 1_500)


async def test_a_connection_has_200_receivers_and_the_next_one_another(fleet):
    """A number of a subscription has one byte; a number that is free again is used again."""
    async with fleet.hub.source() as source:
        receivers = [await source.open_receiver("g", "0", EARLIEST) for _ in range(205)]
        connections = {receiver._connection for receiver in receivers}
        await asyncio.gather(*(receiver.close() for receiver in receivers[:100]))
        receivers += [await source.open_receiver("g", "0", EARLIEST) for _ in range(50)]
        await fleet.publish(0, b"x")
        for receiver in receivers[100:]:
            (event,) = await receiver.receive(events_max=9, wait_max=SOON)
            assert event.body == b"x"
        again = {receiver._connection for receiver in receivers}

    assert (len(connections), len(again)) == (2, 2)


async def test_an_opening_that_is_cancelled_at_any_moment_is_in_the_way_of_no_other(fleet):
    """The broker may have carried a request out although nobody waits for the answer any more.

    A process that was suspended, and lost its partition meanwhile, cancels what it began.
    """
    await fleet.publish(0, b"x")
    async with fleet.hub.source() as source:
        await (await source.open_receiver("g", "0", EARLIEST)).close()
        for step in range(40):
            opening = asyncio.create_task(source.open_receiver("g", "0", EARLIEST))
            await asyncio.sleep(step * 0.0001)
            opening.cancel()
            await asyncio.wait([opening])
            if not opening.cancelled():
                await opening.result().close()
            receiver = await source.open_receiver("g", "0", EARLIEST)
            (event,) = await receiver.receive(events_max=9, wait_max=SOON)
            await receiver.close()

            assert event.body == b"x"
