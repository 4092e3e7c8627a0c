"""Dead letters on a real RabbitMQ broker."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

import aio_pika
import pytest

from eventproc.dead_letters import matching
from eventproc.errors import ConfigurationError, DeadLetterError
from eventproc.models import ConsumerGroup, DeadLetter
from eventproc.sources.rabbitmq import QueueHash, RabbitDeadLetterReader, RabbitDeadLetterSink
from eventproc.sources.rabbitmq._names import QueueNames
from eventproc.testing._source_contract.bench import EARLIEST, GROUP, take
from tests.integration.dead_letters.places import QueuePlace, letter
from tests.integration.sources.rabbitmq_queues import Queues
from tests.scenarios.loops import in_two_loops
from tests.servers.lossy_proxy import LossyProxy
from tests.servers.rabbitmq_broker import RabbitMqBroker


@pytest.fixture(name="queues")
def _queues(rabbitmq: RabbitMqBroker) -> Queues:
    """Return queues for one test, which are not declared yet."""
    return Queues(rabbitmq)


async def letter_of(queues: Queues) -> DeadLetter:
    """Return the dead letter of a message."""
    async with queues.publisher() as publisher:
        await publisher.publish(b"bad", key="k", message_id="m-1")
    partition = QueueNames(queues.prefix, queues.count).number_of("k", QueueHash.JUMP)
    async with queues.source() as source:
        receiver = await source.open_receiver(GROUP, str(partition), EARLIEST)
        (event,) = await take(receiver, 1)
    return DeadLetter(
        event=event,
        group=ConsumerGroup(fully_qualified_namespace="ns", eventhub_name=queues.prefix),
        partition_id="0",
        owner_id="a",
        attempt_count=3,
        error_type="ValueError",
        error_message="no",
        traceback="",
        given_up_at=datetime.now(UTC),
    )


@pytest.mark.long
async def test_a_dead_letter_goes_to_an_exchange_or_a_queue(queues):
    """As JSON, when the broker has confirmed it."""
    letter = await letter_of(queues)
    async with queues.channel() as channel:
        exchange = await channel.declare_exchange(f"{queues.prefix}-dead", "fanout")
        queue = await channel.declare_queue(f"{queues.prefix}-letters", durable=True)
        await queue.bind(exchange)
        for arguments in ({"exchange": exchange.name}, {"routing_key": queue.name}):
            sink = RabbitDeadLetterSink(queues.broker.url, **arguments)
            await sink.open()
            await sink.store(letter)
            await sink.close()
            message = await queue.get(no_ack=True, timeout=30)

            assert message is not None
            assert json.loads(message.body) == json.loads(letter.to_json())
            assert message.message_id == "m-1"
            assert message.delivery_mode is aio_pika.DeliveryMode.PERSISTENT


async def test_a_letter_is_stored_and_removed_only_when_the_broker_confirmed_that(rabbitmq):
    """Otherwise an event could be lost, or counted as replayed and be replayed again."""
    place = QueuePlace(rabbitmq)
    await place.declare()
    port = urlsplit(rabbitmq.url).port
    assert port is not None
    async with LossyProxy(port) as proxy:
        url = rabbitmq.url.replace(f":{port}", f":{proxy.port}")
        sink = RabbitDeadLetterSink(url, routing_key=place.queue)
        await sink.open()
        await sink.store(letter(1))
        async with proxy.lose_answers(None):
            with pytest.raises(DeadLetterError):
                await sink.store(letter(2))
        await sink.close()
        async with RabbitDeadLetterReader(url, place.queue) as reader:
            found = await matching(reader)
            async with proxy.lose_answers(None):
                with pytest.raises(DeadLetterError):
                    await reader.remove(found[0])


@pytest.mark.long
async def test_sink_and_reader_are_used_in_one_event_loop_after_the_other(rabbitmq):
    """Several letters come at once, and each reading finds those that the queue has then."""
    place = QueuePlace(rabbitmq)
    await place.declare()
    sink = place.sink()
    reader = RabbitDeadLetterReader(rabbitmq.url, place.queue)
    counts: list[int] = []

    async def use():
        first = 8 * len(counts)
        await sink.open()
        await asyncio.gather(*(sink.store(letter(first + number)) for number in range(8)))
        await sink.close()
        async with reader:
            counts.append(len(await matching(reader)))

    await in_two_loops(use)

    assert counts == [8, 16]


@pytest.mark.long
async def test_a_dead_letter_that_no_queue_takes_is_an_error(queues):
    """Otherwise it would be lost, and the message with it."""
    letter = await letter_of(queues)
    async with queues.channel() as channel:
        await channel.declare_exchange(f"{queues.prefix}-dead", "fanout")
    sink = RabbitDeadLetterSink(queues.broker.url, exchange=f"{queues.prefix}-dead")
    await sink.open()
    with pytest.raises(DeadLetterError, match="no queue takes"):
        await sink.store(letter)
    await sink.close()


@pytest.mark.parametrize("ids", [("a", "b"), ("same", "same")])
async def test_each_of_two_letters_at_once_that_no_queue_takes_is_an_error(queues, ids):
    """Programs may give several messages one id, and the client knows a returned one by that."""
    letters = [replace(letter(1), event=replace(letter(1).event, message_id=each)) for each in ids]
    async with queues.channel() as channel:
        await channel.declare_exchange(f"{queues.prefix}-dead", "fanout")
    sink = RabbitDeadLetterSink(queues.broker.url, exchange=f"{queues.prefix}-dead")
    await sink.open()
    outcomes = await asyncio.gather(*map(sink.store, letters), return_exceptions=True)
    await sink.close()

    assert [type(outcome) for outcome in outcomes] == 2 * [DeadLetterError]


@pytest.mark.long
@pytest.mark.parametrize("arguments", [{"exchange": "nothing"}, {"routing_key": "nothing"}])
async def test_a_place_for_dead_letters_that_does_not_exist_is_refused(queues, arguments):
    """When the processor starts, not when the first letter has to be stored."""
    sink = RabbitDeadLetterSink(queues.broker.url, **arguments)
    with pytest.raises(ConfigurationError, match="nothing"):
        await sink.open()
    await sink.close()
