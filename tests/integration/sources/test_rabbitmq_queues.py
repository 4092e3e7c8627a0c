"""Partition queues on a real RabbitMQ broker: what a source of them keeps, and what it refuses."""

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from eventproc.columns import to_columns
from eventproc.errors import ConfigurationError, SourceRejectedError, SourceUnavailableError
from eventproc.models import EventPosition
from eventproc.sources.rabbitmq import QueueHash, QueuePublisher, RabbitQueues
from eventproc.sources.rabbitmq._event import DELIVERIES
from eventproc.sources.rabbitmq._names import QueueNames
from eventproc.testing import check_event_source, source_clause_names
from eventproc.testing._clauses import clauses_of
from eventproc.testing._source_contract import logs
from eventproc.testing._source_contract.bench import EARLIEST, GROUP, SOON, bodies, numbered, take
from tests.integration.sources.rabbitmq_queues import Queues
from tests.servers.rabbitmq_broker import RabbitMqBroker

OF_LOGS = [clause.__name__ for clause in clauses_of(logs)]


@pytest.fixture(name="queues")
def _queues(rabbitmq: RabbitMqBroker) -> Queues:
    """Return queues for one test, which are not declared yet."""
    return Queues(rabbitmq)


def again(events) -> EventPosition:
    """Return the position of a link that follows one with these events."""
    return EventPosition.from_sequence_number(events[-1].sequence_number)


async def until_free(queues: Queues, count: int) -> None:
    """Wait until so many messages wait for a consumer."""
    async with asyncio.timeout(10):
        while await queues.left() != count:  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0.05)


async def test_a_message_that_comes_again_has_the_number_of_its_former_deliveries(queues):
    """As the broker counts them."""
    await queues.publish("0", *numbered(2))
    async with queues.source() as source:
        first = await source.open_receiver(GROUP, "0", EARLIEST)
        events = await take(first, 2)
        await first.close()
        second = await source.open_receiver(GROUP, "0", again(events))
        rest = await take(second, 2)

    assert [event.system_properties for event in events] == [{}] * 2
    assert [event.system_properties for event in rest] == [{DELIVERIES: 1}] * 2


@pytest.mark.parametrize(
    "clause",
    [
        pytest.param(name, marks=[] if "settled" in name else [pytest.mark.long])
        for name in source_clause_names()
        if name not in OF_LOGS
    ],
)
async def test_queues_meet_each_clause_of_the_contract(clause, queues):
    """Each clause is stated by the name of its function."""
    await queues.declare()
    await check_event_source(lambda: queues, only=clause)


async def test_columns_of_messages_are_those_of_their_events(queues):
    """They are made of the events, as of each source without columns of its own."""
    await queues.publish("0", *numbered(10))
    async with queues.source() as source:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        receiver.read_columns()
        events = await take(receiver, 10)
        await receiver.close()
    columns = to_columns(events, ("body", "sequenceNumber"), "0")

    assert columns.column("body").to_pylist() == numbered(10)
    assert columns.column("sequenceNumber").to_pylist() == list(range(10))


async def test_properties_may_be_bytes_and_no_infinite_numbers(queues):
    """The broker would end the connection, which other messages use, too."""
    async with queues.publisher() as publisher:
        with pytest.raises(ValueError, match="'ratio' is inf, not a finite number"):
            await publisher.publish(b"x", key="k", properties={"ratio": float("inf")})
        await publisher.publish(b"y", key="k", properties={"digest": b"\xff"})
    partition = QueueNames(queues.prefix, queues.count).number_of("k", QueueHash.JUMP)
    async with queues.source() as source:
        receiver = await source.open_receiver(GROUP, str(partition), EARLIEST)
        (event,) = await take(receiver, 1)
        await receiver.close()

    assert (event.body, event.properties) == (b"y", {"digest": b"\xff"})


@pytest.mark.long
@pytest.mark.parametrize("how", QueueHash)
async def test_a_key_has_one_queue_and_stays_in_order(queues, how):
    """Many tasks publish at once; each of them awaits the confirmation before its next message."""
    async with queues.publisher(key_hash=how) as publisher, queues.source() as source:

        async def publish(key: str) -> None:
            for number in range(20):
                await publisher.publish(b"%d" % number, key=key, properties={"colour": "red"})

        await asyncio.gather(*(publish(f"k{number}") for number in range(15)))
        by_key: dict[str | None, list[tuple[str, bytes]]] = {}
        for partition_id in await source.partition_ids():
            properties = await source.partition_properties(partition_id)
            receiver = await source.open_receiver(GROUP, partition_id, EARLIEST)
            depth = properties.last_enqueued_sequence_number + 1
            for event in await take(receiver, depth):
                assert event.properties == {"colour": "red"}
                assert datetime.now(UTC) - event.enqueued_time < timedelta(minutes=1)
                assert event.enqueued_time.microsecond == 0, "by AMQP, the publisher's"
                by_key.setdefault(event.partition_key, []).append((partition_id, event.body))

    assert set(by_key) == {f"k{number}" for number in range(15)}
    for got in by_key.values():
        assert [body for _, body in got] == numbered(20)
        assert len({partition_id for partition_id, _ in got}) == 1


@pytest.mark.long
async def test_many_messages_may_be_published_at_the_same_time(queues):
    """Over one channel: the broker allows 2,047 for a connection."""
    async with queues.publisher() as publisher:
        await asyncio.gather(*(publisher.publish(b"x", key=f"k{n}") for n in range(2500)))

    assert await queues.left() == 2500


@pytest.mark.long
async def test_no_more_is_sent_ahead_than_the_options_say(queues):
    """Then the broker waits until something is settled."""
    await queues.publish("0", *numbered(30))
    async with queues.source(prefetch=10) as source:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        first = await take(receiver, 10)
        none = await receiver.receive(events_max=100, wait_max=timedelta(seconds=0.5))
        receiver.settle(first[4].sequence_number)
        more = await take(receiver, 5)

    assert (bodies(first), list(none)) == (numbered(10), [])
    assert bodies(more) == numbered(30)[10:15]


@pytest.mark.long
async def test_a_stopped_receiver_settles_and_gets_nothing_more(queues):
    """Cancel, finish, acknowledge, close: the order of a hand-over."""
    await queues.declare()
    async with queues.source() as source:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        await queues.publish("0", *numbered(3))
        events = await take(receiver, 3)
        await receiver.stop()
        await queues.publish("0", b"later")
        none = await receiver.receive(events_max=100, wait_max=timedelta(seconds=0.3))
        receiver.settle(events[-1].sequence_number)
        await receiver.close()
        await until_free(queues, 1)

    assert list(none) == []


@pytest.mark.long
async def test_the_lag_counts_what_the_broker_has(queues):
    """It is asked for at an interval."""
    await queues.publish("0", *numbered(30))
    async with queues.source(prefetch=10, depth_interval=timedelta(seconds=0.1)) as source:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        await take(receiver, 10)
        async with asyncio.timeout(10):
            while receiver.last_enqueued.sequence_number != 29:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        properties = await source.partition_properties("0")

    assert properties.last_enqueued_sequence_number == 29
    assert not properties.is_empty


@pytest.mark.long
async def test_a_second_consumer_gets_nothing_while_the_first_one_lives(queues):
    """The broker's own fence, beside the lease."""
    await queues.declare()
    async with queues.source() as mine, queues.source() as theirs:
        first = await mine.open_receiver(GROUP, "0", EARLIEST)
        second = await theirs.open_receiver(GROUP, "0", EARLIEST)
        await queues.publish("0", *numbered(3))
        none = await second.receive(events_max=10, wait_max=timedelta(seconds=0.5))
        await take(first, 3)
        await first.close()
        events = await take(second, 3)

    assert list(none) == []
    assert bodies(events) == numbered(3)


@pytest.mark.long
async def test_a_frozen_consumer_keeps_its_queue_for_three_heartbeats_at_most(queues):
    """Then the broker ends its connection, and the next consumer gets what was not settled."""
    heartbeat = timedelta(seconds=2)
    holds, woken = threading.Event(), threading.Event()

    async def freeze() -> None:
        async with queues.source(heartbeat=heartbeat) as source:
            receiver = await source.open_receiver(GROUP, "0", EARLIEST)
            await take(receiver, 3)
            holds.set()
            woken.wait(30)
            with pytest.raises(SourceUnavailableError):
                await receiver.receive(events_max=1, wait_max=SOON)

    await queues.publish("0", *numbered(3))
    frozen = asyncio.create_task(asyncio.to_thread(asyncio.run, freeze()))
    await asyncio.to_thread(holds.wait, 30)
    began_s = time.monotonic()
    async with queues.source() as source:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        events = await receiver.receive(events_max=3, wait_max=10 * heartbeat)
        took_s = time.monotonic() - began_s
    woken.set()
    await frozen

    assert events[0].body == b"0"
    assert 1 < took_s / heartbeat.total_seconds() < 3.5


@pytest.mark.long
async def test_a_queue_that_is_deleted_ends_its_link(queues):
    """Otherwise its partition would rest in silence."""
    await queues.publish("0", b"any")
    async with queues.source() as source, queues.channel() as channel:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        await take(receiver, 1)
        await channel.queue_delete(queues.queue(0))
        with pytest.raises(SourceUnavailableError, match="was its queue deleted"):
            await receiver.receive(events_max=1, wait_max=SOON)
        with pytest.raises(SourceUnavailableError, match="was its queue deleted"):
            await receiver.until_settled()
        with pytest.raises(SourceRejectedError, match=queues.queue(0)):
            await source.open_receiver(GROUP, "0", EARLIEST)


def changed(url: str, **parts: str) -> str:
    """Return the address with another password or virtual host."""
    return url.replace(":guest@", f":{parts.get('password', 'guest')}@") + parts.get("vhost", "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"password": "wrong"}, "ACCESS_REFUSED"),
        ({"vhost": "nowhere"}, "there may be no virtual host of this name"),
    ],
)
async def test_what_the_broker_refuses_is_a_configuration_error(queues, parts, reason):
    """At the start, with the address and without the password."""
    url = changed(queues.broker.url, **parts)
    async with RabbitQueues(url, prefix="q", count=1) as source:
        with pytest.raises(ConfigurationError, match=reason) as caught:
            await source.check_consumer_group(GROUP)
    with pytest.raises(SourceRejectedError, match=reason):
        await QueuePublisher(url, prefix="q", count=1).open()

    assert "127.0.0.1" in str(caught.value)
    assert "wrong" not in str(caught.value)
    assert ".." not in str(caught.value)


@pytest.mark.long
async def test_a_queue_of_another_kind_is_refused(queues):
    """A classic queue, or one without a single active consumer, would let two consumers read."""
    async with queues.channel() as channel:
        await channel.declare_queue(
            queues.queue(1), durable=True, arguments={"x-queue-type": "quorum"}
        )
    async with queues.source() as source:
        with pytest.raises(ConfigurationError, match="x-single-active-consumer") as caught:
            await source.check_consumer_group(GROUP)

    assert queues.queue(1) in str(caught.value)


async def test_a_broker_that_is_away_is_waited_for():
    """The error says that another attempt may succeed."""
    source = RabbitQueues("amqp://guest:guest@127.0.0.1:1/", prefix="q", count=1)
    async with source:
        with pytest.raises(SourceUnavailableError, match=r"127\.0\.0\.1:1"):
            await source.check_consumer_group(GROUP)
        with pytest.raises(SourceUnavailableError, match=r"127\.0\.0\.1:1"):
            await source.open_receiver(GROUP, "0", EARLIEST)


@pytest.mark.long
async def test_a_killed_broker_ends_every_link_and_keeps_every_message(tmp_path):
    """What was published with confirms and not settled is there after its restart."""
    with RabbitMqBroker(location=tmp_path) as broker:
        queues = Queues(broker)
        await queues.publish("0", *numbered(10))
        soon = timedelta(seconds=0.1)
        async with (
            queues.source(prefetch=10, depth_interval=soon) as source,
            queues.publisher() as publisher,
        ):
            receiver = await source.open_receiver(GROUP, "0", EARLIEST)
            events = await take(receiver, 10)
            receiver.settle(events[3].sequence_number)
            await receiver.until_settled()
            await asyncio.to_thread(broker.kill)
            with pytest.raises(SourceUnavailableError):
                await receiver.receive(events_max=1, wait_max=SOON)
            receiver.settle(events[9].sequence_number)
            with pytest.raises(SourceUnavailableError):
                await receiver.until_settled()
            with pytest.raises(SourceUnavailableError):
                await source.open_receiver(GROUP, "0", again(events))
            with pytest.raises(SourceUnavailableError):
                await publisher.publish(b"lost", key="k")
            await asyncio.to_thread(broker.start)
            receiver = await source.open_receiver(GROUP, "0", again(events))
            rest = await take(receiver, 6)
            while bodies(rest)[-1] != b"9":  # A kill may lose acknowledgements.
                rest += await take(receiver, 1)
            await publisher.publish(b"found", key="k")
            await queues.publish("0", *numbered(20))
            async with asyncio.timeout(10):
                while (at := receiver.last_enqueued) and at.sequence_number < 35:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)  # The lag is asked for again.

    assert len(rest) >= 6
    assert bodies(rest) == numbered(10)[-len(rest) :]
