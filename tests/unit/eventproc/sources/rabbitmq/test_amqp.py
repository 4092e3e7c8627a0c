"""The connection to a broker, with a fake of the client."""

import asyncio
import gc
import socket
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import aio_pika
import pytest
from aiormq.exceptions import AMQPConnectionError, IncompatibleProtocolError
from pamqp.exceptions import UnmarshalingException

from eventproc.errors import (
    ConfigurationError,
    DeadLetterError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)
from eventproc.sources.rabbitmq import RabbitDeadLetterSink, RabbitQueues
from eventproc.sources.rabbitmq._amqp import QUEUE_ARGUMENTS, Broker, Consumer
from eventproc.testing import run_virtual
from tests.scenarios.loops import in_two_loops


class FakeChannel:
    """Notes what is declared."""

    is_closed = False

    def __init__(self, declared: dict[str, object]) -> None:
        self._declared = declared

    async def declare_queue(self, name, *, durable, arguments) -> None:
        assert durable
        self._declared[name] = arguments

    async def close(self) -> None:
        self.is_closed = True


class MuteChannel(FakeChannel):
    """A channel on which a request to consume gets no answer."""

    def __init__(self, declared: dict[str, object]) -> None:
        super().__init__(declared)
        self.close_callbacks: set[object] = set()
        self.on_consumer_cancel_callbacks: set[object] = set()

    async def set_qos(self, *, prefetch_count) -> None:
        pass

    async def get_underlay_channel(self) -> "MuteChannel":
        return self

    async def basic_consume(self, *_) -> None:
        await asyncio.Event().wait()


class FakeClient:
    """Opens connections to a broker of some version."""

    def __init__(
        self, version: object = "3.13.7", channel_kind: type[FakeChannel] = FakeChannel
    ) -> None:
        self.version = version
        self.channel_kind = channel_kind
        self.connections: list[SimpleNamespace] = []
        self.declared: dict[str, object] = {}
        self.closed_count = 0
        self.channels: list[FakeChannel] = []
        self.error: Exception | None = None

    async def connect(self, _, *, heartbeat, **__) -> SimpleNamespace:
        await asyncio.sleep(0.01)
        if self.error is not None:
            raise self.error
        socket = SimpleNamespace(is_opened=True, server_properties={"version": self.version})
        connection = SimpleNamespace(
            transport=SimpleNamespace(connection=socket),
            channel=self._channel,
            close=self._close,
            heartbeat=heartbeat,
        )
        self.connections.append(connection)
        return connection

    async def _channel(self, *, publisher_confirms) -> FakeChannel:
        assert not publisher_confirms
        self.channels.append(self.channel_kind(self.declared))
        return self.channels[-1]

    async def _close(self) -> None:
        self.closed_count += 1


def opened(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> Broker:
    monkeypatch.setattr(aio_pika, "connect", client.connect)
    return Broker("amqp://broker/", heartbeat_s=7, timeout=timedelta(seconds=3))


@pytest.mark.parametrize(
    ("version", "limit"),
    [
        ("3.10.8", {}),
        ("4.0.1", {"x-delivery-limit": -1}),
        ("10.1", {"x-delivery-limit": -1}),
        ("main", {}),
        (None, {}),
    ],
)
async def test_queues_have_no_limit_of_deliveries(version, limit, monkeypatch):
    """From RabbitMQ 4 on it has to be switched off; before, there is none and it is refused."""
    client = FakeClient(version)

    await opened(client, monkeypatch).declare({"q-P0": QUEUE_ARGUMENTS})

    assert client.declared == {"q-P0": {**QUEUE_ARGUMENTS, **limit}}


async def test_requests_at_one_time_share_a_connection(monkeypatch):
    """One heartbeat speaks for all queues; a second connection would never be closed."""
    client = FakeClient()
    broker = opened(client, monkeypatch)

    await asyncio.gather(*(broker.declare({f"q-P{number}": {}}) for number in range(5)))
    await broker.close()

    assert len(client.declared) == 5
    assert [connection.heartbeat for connection in client.connections] == [7]
    assert client.closed_count == 1
    assert all(channel.is_closed for channel in client.channels)


async def test_a_connection_that_the_broker_ended_is_opened_again(monkeypatch):
    """The client itself still calls it open."""
    client = FakeClient()
    broker = opened(client, monkeypatch)
    await broker.declare({"one": {}})
    client.connections[0].transport.connection.is_opened = False

    await broker.declare({"two": {}})

    assert list(client.declared) == ["one", "two"]
    assert (len(client.connections), client.closed_count) == (2, 1)


async def test_a_broker_is_used_in_one_event_loop_after_the_other(monkeypatch):
    """As those of publishers and dead letters are, if their program runs again. What the first loop
    left open is of no use in the second.
    """
    client = FakeClient()
    broker = opened(client, monkeypatch)

    async def use():
        await asyncio.gather(*(broker.declare({f"q-P{number}": {}}) for number in range(3)))

    await in_two_loops(use)

    assert len(client.connections) == 2


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (AMQPConnectionError("[Errno -2] Name or service not known"), SuspectSettingError),
        (AMQPConnectionError("[Errno 111] Connection refused"), SourceUnavailableError),
        (IncompatibleProtocolError(), SourceRejectedError),
        (RuntimeError("closed"), SourceUnavailableError),
        (UnmarshalingException("frame", "bytes"), SourceUnavailableError),
    ],
)
async def test_errors_of_the_client_are_those_of_a_source(error, raised, monkeypatch):
    """With the address, and without the login."""
    client = FakeClient()
    client.error = error

    with pytest.raises(raised, match="declaring the queues at broker") as caught:
        await opened(client, monkeypatch).declare({"q": {}})

    assert type(caught.value) is raised


async def test_an_unknown_host_is_a_configuration_error(monkeypatch):
    """At the start of source and sink: another attempt would find it no more."""
    client = FakeClient()
    client.error = AMQPConnectionError("[Errno -2] Name or service not known")
    monkeypatch.setattr(aio_pika, "connect", client.connect)
    sink = RabbitDeadLetterSink("amqp://broker/", exchange="dead")

    async with RabbitQueues("amqp://broker/", prefix="q", count=1) as source:
        with pytest.raises(ConfigurationError, match="not known"):
            await source.check_consumer_group("g")
    with pytest.raises(ConfigurationError, match="not known"):
        await sink.open()


async def test_a_place_for_dead_letters_that_does_not_answer_is_tried_again(monkeypatch):
    """Not the processor's configuration is wrong."""
    client = FakeClient()
    client.error = AMQPConnectionError("[Errno 111] Connection refused")
    monkeypatch.setattr(aio_pika, "connect", client.connect)

    with pytest.raises(DeadLetterError, match="refused"):
        await RabbitDeadLetterSink("amqp://broker/", routing_key="letters").open()


async def test_a_server_that_never_answers_is_given_up_after_the_timeout():
    """The message says how long that was."""
    with socket.create_server(("127.0.0.1", 0)) as server:  # Nobody accepts.
        address = f"127.0.0.1:{server.getsockname()[1]}"
        broker = Broker(f"amqp://{address}/", heartbeat_s=1, timeout=timedelta(seconds=0.2))
        with pytest.raises(SourceUnavailableError, match=rf"{address}: no answer in 0\.2 s"):
            await broker.depths(["q"])


@pytest.mark.parametrize("after_s", [1, 60], ids=["cancelled", "no answer"])
def test_a_request_to_consume_that_is_given_up_leaves_no_consumer_behind(after_s, monkeypatch):
    """The broker may have registered it: as the single active one it would hold the queue."""

    async def consume():
        client = FakeClient(channel_kind=MuteChannel)
        broker = opened(client, monkeypatch)
        requested = asyncio.ensure_future(broker.consume("q", 10, print, print))
        await asyncio.sleep(after_s)
        requested.cancel()
        (outcome,) = await asyncio.gather(requested, return_exceptions=True)
        return type(outcome), [channel.is_closed for channel in client.channels]

    raised = asyncio.CancelledError if after_s == 1 else SourceUnavailableError
    assert run_virtual(consume()) == (raised, [True])


async def test_a_connection_that_failed_leaves_no_task_behind():
    """The client would start one when the connection is collected, in a thread without a loop."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    broker = Broker(f"amqp://{address}/", heartbeat_s=1, timeout=timedelta(seconds=1))
    gc.disable()
    try:
        with pytest.raises(SourceUnavailableError):
            await broker.declare({})
        tasks = len(asyncio.all_tasks())
        await asyncio.to_thread(gc.collect)
    finally:
        gc.enable()

    assert len(asyncio.all_tasks()) == tasks


@pytest.mark.parametrize(
    ("said", "is_too_late"),
    [
        ("PRECONDITION_FAILED - delivery acknowledgement on channel 2 timed out. Timeout", True),
        ("PRECONDITION_FAILED - unknown delivery tag 7", False),
        (None, False),
    ],
)
def test_the_brokers_acknowledgement_timeout_is_named_with_the_remedy(said, is_too_late):
    """It looks like any other end of a link, and strikes again at each delivery."""
    ended: list[str] = []
    channel = SimpleNamespace(close_callbacks=set())
    raw = SimpleNamespace(on_consumer_cancel_callbacks=set())
    Consumer(channel, raw, 10, lambda error: ended.append(str(error)))  # type: ignore[arg-type]
    for note in channel.close_callbacks:
        note(channel, said and RuntimeError(said))

    assert ("Raise consumer_timeout" in ended[0]) == is_too_late


async def test_a_consumer_that_closes_sends_first_what_was_acknowledged():
    """Else the messages come again."""
    sent: list[object] = []

    async def basic_ack(number, **_) -> None:
        await asyncio.sleep(0)
        sent.append(number)

    async def close() -> None:
        sent.append("closed")

    channel = SimpleNamespace(close_callbacks=set(), close=close)
    raw = SimpleNamespace(on_consumer_cancel_callbacks=set(), basic_ack=basic_ack)
    consumer = Consumer(channel, raw, 10, print)  # type: ignore[arg-type]
    consumer.acknowledge(5, [7])
    await consumer.close(60)

    assert sent == [7, 5, "closed"]


class SlowChannel:
    """Notes acknowledgements when the client sends them; each takes a turn."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.close_callbacks: set[object] = set()
        self.on_consumer_cancel_callbacks: set[object] = set()

    async def basic_ack(self, number, *, multiple=False, wait=True):
        await asyncio.sleep(0)
        self.sent.append(number)


async def test_acknowledgements_are_sent_in_the_order_of_the_calls():
    """One of all messages before single ones of them would end the channel."""
    channel: Any = SlowChannel()
    consumer = Consumer(channel, channel, 10, lambda _: None)
    consumer.acknowledge(None, [2, 4, 6, 8])
    consumer.acknowledge(9, [])
    for _ in range(20):
        await asyncio.sleep(0)

    assert channel.sent == [2, 4, 6, 8, 9]
