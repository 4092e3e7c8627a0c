"""A wrapper around aio-pika; besides ``_frames`` its only importer.

Rule 1: every exception of the client leaves this module as one of ``eventproc.errors``.
Rule 2: the client does not reconnect by itself. Delivery tags are valid on one connection only, so
a receiver must learn that its connection ended.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from datetime import timedelta
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import aio_pika
import aiormq
import pamqp.exceptions
from aio_pika.abc import AbstractChannel
from aiormq.abc import AbstractChannel as RawChannel
from aiormq.abc import DeliveredMessage

from eventproc.errors import (
    ConfigurationError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)
from eventproc.sources.rabbitmq._frames import BrokerConnection

HEARTBEAT_S: Final = 10
"""The heartbeat of publishers, dead letters, and sources without a processor."""

CONNECT_TIMEOUT: Final = timedelta(seconds=15)
"""The time limit of requests, unless the options of a source say otherwise."""

ACKNOWLEDGEMENT_TIMEOUT: Final = timedelta(minutes=30)
"""The broker's default of ``consumer_timeout``. Its value cannot be asked over AMQP."""

TOO_LATE: Final = (
    ". A message was not acknowledged within the broker's consumer_timeout, and comes again: a "
    "call of the handler took too long, or too many messages waited before it. Raise "
    "consumer_timeout (rabbitmq.conf, or a policy of the queue), set failover_timeout below it, or "
    "lower QueueOptions.prefetch"
)


QUEUE_ARGUMENTS: Final[Mapping[str, Any]] = {
    "x-queue-type": "quorum",
    "x-single-active-consumer": True,
}
"""Durable queues that survive the loss of a broker, each with one consumer at a time."""

UNLIMITED: Final[Mapping[str, Any]] = {"x-delivery-limit": -1}
"""From RabbitMQ 4 on a quorum queue drops a message after 20 deliveries, unless this is set."""

LIMITED_FROM: Final = 4
"""The first version of RabbitMQ with a limit of deliveries."""

_REJECTED: Final = (
    aiormq.exceptions.AuthenticationError,
    aiormq.exceptions.ProbableAuthenticationError,
    aiormq.exceptions.ChannelAccessRefused,
    aiormq.exceptions.ChannelNotFoundEntity,
    aiormq.exceptions.ChannelPreconditionFailed,
    aiormq.exceptions.ConnectionNotAllowed,
)
FAILED: Final = (
    aiormq.exceptions.AMQPError,
    pamqp.exceptions.PAMQPException,
    OSError,
    RuntimeError,  # what aio-pika raises if a connection is closed
)
"""All other errors that the client raises for a request; ``TimeoutError`` is an ``OSError``."""

# Each failure leaves this module as an error, so the client's log of its traceback is off.
if logging.getLogger("aiormq").level == logging.NOTSET:
    logging.getLogger("aiormq").setLevel(logging.CRITICAL)


@contextmanager
def without_client_cancellations() -> Iterator[None]:
    """Raise ``ConnectionError`` if the client cancels a request because the connection ended.

    A cancellation of the calling task is passed on.
    """
    task = asyncio.current_task()
    assert task is not None, "only inside a task"
    before = task.cancelling()
    try:
        yield
    except asyncio.CancelledError as error:
        if task.cancelling() > before:
            raise
        raise ConnectionError("the connection ended before the answer") from error


Delivery: TypeAlias = DeliveredMessage
"""A message that a consumer gets."""

HeldMessage: TypeAlias = aio_pika.abc.AbstractIncomingMessage
"""A message that no other consumer gets until it is acknowledged, or its channel is closed."""


class Consumer:
    """Deliveries of one queue, on a channel of its own."""

    def __init__(
        self,
        channel: AbstractChannel,
        raw: RawChannel,
        prefetch: int,
        on_end: Callable[[SourceError], None],
    ) -> None:
        self._channel = channel
        self._raw = raw
        self._prefetch = prefetch
        self._on_end = on_end
        self._tag: str | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()  # An acknowledgement of all must not overtake single ones.
        channel.close_callbacks.add(self._note_close)
        raw.on_consumer_cancel_callbacks.add(self._note_cancel)

    def _note_close(self, _: object, error: BaseException | None) -> None:
        said = str(error or "") or "no answers"
        remedy = TOO_LATE if "acknowledgement" in said and "timed out" in said else ""
        self._on_end(SourceUnavailableError(f"the channel was closed: {said}{remedy}"))

    def _note_cancel(self, _: object) -> None:
        self._on_end(
            SourceUnavailableError("the broker ended the consumer: was its queue deleted?")
        )

    async def begin(self, queue: str, deliver: Callable[[Delivery], None]) -> None:
        """Register with the broker; *deliver* is called with each message, in order."""

        async def on_message(message: Delivery) -> None:
            deliver(message)

        answer = await self._raw.basic_consume(queue, on_message)
        self._tag = answer.consumer_tag

    def acknowledge(self, through: int | None, single: Collection[int]) -> None:
        """Acknowledge all deliveries up to a number, and single ones, in the background."""
        self._start(self._acknowledge(through, single))

    async def _acknowledge(self, through: int | None, single: Collection[int]) -> None:
        # If the channel is closed, its deliveries come again.
        async with self._turn:
            with suppress(*FAILED), without_client_cancellations():
                for number in single:
                    await self._raw.basic_ack(number, wait=False)
                if through is not None:
                    await self._raw.basic_ack(through, multiple=True)

    async def until_acknowledged(self, timeout_s: float) -> None:
        """Return when the broker has received all acknowledgements made before this call.

        Raises:
            SourceUnavailableError: it did not answer, or the channel is closed.
        """
        # Shielded, because the client closes the channel if a request is cancelled.
        await asyncio.shield(self._start(self._ask(timeout_s)))

    async def _ask(self, timeout_s: float) -> None:
        """Make a request without effect; its answer shows that all frames before it were read."""
        others = self._sending - {asyncio.current_task()}
        try:
            if others:
                await asyncio.wait(others)
            with without_client_cancellations():
                await self._raw.basic_qos(prefetch_count=self._prefetch, timeout=timeout_s)
        except FAILED as error:
            raise SourceUnavailableError(f"acknowledgements may be lost: {error!r}") from error

    def _start(self, sending: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(sending)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        return task

    async def stop(self, timeout_s: float) -> None:
        """Receive no more deliveries; earlier ones may still be acknowledged. Never raises."""
        tag, self._tag = self._tag, None
        if tag is not None:
            with suppress(*FAILED), without_client_cancellations():
                await self._raw.basic_cancel(tag, timeout=timeout_s)

    async def close(self, timeout_s: float) -> None:
        """Send the pending acknowledgements, and close the channel. Never raises."""
        self._channel.close_callbacks.discard(self._note_close)
        with suppress(*FAILED), without_client_cancellations():
            async with asyncio.timeout(timeout_s):
                if self._sending:
                    await asyncio.wait(self._sending)
                await self._channel.close()


class Broker:
    """A connection to one broker, opened when it is needed."""

    def __init__(
        self, url: str, *, heartbeat_s: int = HEARTBEAT_S, timeout: timedelta = CONNECT_TIMEOUT
    ) -> None:
        """Keep the address.

        Raises:
            ConfigurationError: it is not a URL of a broker.
        """
        self._url = url
        self._heartbeat_s = heartbeat_s
        self._timeout_s = timeout.total_seconds()
        self._connection: aio_pika.abc.AbstractConnection | None = None
        self._confirming: AbstractChannel | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock: asyncio.Lock
        self._turn_by_message_id = WeakValueDictionary[str, asyncio.Lock]()
        self.shown = shown_address(url)
        """The address without user and password."""

    async def connected(self) -> aio_pika.abc.AbstractConnection:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Locks and connections belong to an event loop, and this is the first request in it.
            self._loop, self._lock = loop, asyncio.Lock()
            self._connection = self._confirming = None
        async with self._lock:
            if self._connection is None or not _is_open(self._connection):
                await self.close()
                self._connection = await aio_pika.connect(
                    self._url,
                    timeout=self._timeout_s,
                    heartbeat=self._heartbeat_s,
                    connection_class=BrokerConnection,
                )
            return self._connection

    async def declare(self, queues: Mapping[str, Mapping[str, Any]]) -> None:
        """Declare durable queues that do not exist yet, with these arguments.

        Raises:
            SourceRejectedError: one exists with other arguments, or the user may not declare it.
            SourceUnavailableError: no answer.
        """
        async with self.answered("declaring the queues"), self._channel() as channel:
            is_limited = self.version() >= LIMITED_FROM
            for name, arguments in queues.items():
                extra = UNLIMITED if is_limited else {}
                await channel.declare_queue(name, durable=True, arguments={**arguments, **extra})

    def version(self) -> int:
        """Return the main version of the broker."""
        assert self._connection is not None, "a request was made before"
        transport = self._connection.transport
        assert transport is not None, "it is connected"
        version = str(transport.connection.server_properties.get("version", "0"))
        return int(version.partition(".")[0]) if version[:1].isdigit() else 0

    async def depths(self, queues: list[str]) -> list[int]:
        """Return how many messages wait in each queue, without those that were delivered.

        Raises:
            SourceRejectedError: one does not exist.
            SourceUnavailableError: no answer.
        """
        async with self.answered("asking for the queues"), self._channel() as channel:
            found = [await channel.declare_queue(name, passive=True) for name in queues]
        return [queue.declaration_result.message_count or 0 for queue in found]

    async def check_exchange(self, name: str) -> None:
        """Check that an exchange exists.

        Raises:
            SourceRejectedError: it does not.
            SourceUnavailableError: no answer.
        """
        async with self.answered(f"asking for exchange {name!r}"), self._channel() as channel:
            await channel.get_exchange(name, ensure=True)

    async def consume(
        self,
        queue: str,
        prefetch: int,
        deliver: Callable[[Delivery], None],
        on_end: Callable[[SourceError], None],
    ) -> Consumer:
        """Consume a queue. *on_end* is called when the link has ended by itself.

        Raises:
            SourceRejectedError: there is no such queue, or the user may not read it.
            SourceUnavailableError: no answer.
        """
        async with self.answered(f"consuming {queue!r}"):
            connection = await self.connected()
            channel = await connection.channel(publisher_confirms=False)
            await channel.set_qos(prefetch_count=prefetch)
            raw = await channel.get_underlay_channel()
            consumer = Consumer(channel, raw, prefetch, on_end)
            try:
                await consumer.begin(queue, deliver)
            except BaseException:
                await consumer.close(self._timeout_s)
                raise
            return consumer

    async def publish(
        self,
        body: bytes,
        *,
        exchange: str,
        routing_key: str,
        **properties: Any,  # noqa: ANN401
    ) -> None:
        """Publish a persistent message; return when the broker has confirmed it.

        Raises:
            SourceRejectedError: there is no such exchange, or no queue took the message.
            SourceUnavailableError: no confirmation; the message may have been stored.
        """
        message = aio_pika.Message(
            body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT, **properties
        )
        # The client knows a message that comes back by its id alone.
        turn: AbstractAsyncContextManager[None] = nullcontext()
        if message.message_id:
            turn = self._turn_by_message_id.setdefault(message.message_id, asyncio.Lock())
        async with (
            turn,
            self.answered(f"publishing to {routing_key!r}"),
        ):
            channel = await self._publishing()
            target = (
                await channel.get_exchange(exchange, ensure=False)
                if exchange
                else channel.default_exchange
            )
            await target.publish(message, routing_key, timeout=self._timeout_s)

    async def _publishing(self) -> AbstractChannel:
        connection = await self.connected()
        async with self._lock:
            if self._confirming is None or self._confirming.is_closed:
                self._confirming = await connection.channel(
                    publisher_confirms=True, on_return_raises=True
                )
            return self._confirming

    @asynccontextmanager
    async def _channel(self) -> AsyncIterator[AbstractChannel]:
        connection = await self.connected()
        channel = await connection.channel(publisher_confirms=False)
        try:
            yield channel
        finally:
            if not channel.is_closed:
                await channel.close()

    @asynccontextmanager
    async def answered(self, what: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                with without_client_cancellations():
                    yield
        except aiormq.exceptions.PublishError as error:
            raise SourceRejectedError(
                f"{what} at {self.shown}: no queue takes messages of this routing key"
            ) from error
        except _REJECTED as error:
            raise SourceRejectedError(f"{what} at {self.shown}: {error}") from error
        except (
            aiormq.exceptions.IncompatibleProtocolError,
            aiormq.exceptions.InvalidFrameError,  # The answer to an unknown virtual host.
        ) as error:
            raise SourceRejectedError(
                f"{what} at {self.shown}: the broker refused the connection; there may be no "
                "virtual host of this name, the last part of the address"
            ) from error
        except OSError as error:
            is_name = "Name or service" in str(error) or "nodename" in str(error)
            kind = SuspectSettingError if is_name else SourceUnavailableError
            said = str(error) or f"no answer in {self._timeout_s:g} s"
            raise kind(f"{what} at {self.shown}: {said}") from error
        except FAILED as error:
            raise SourceUnavailableError(f"{what} at {self.shown}: {error!r}") from error

    async def close(self) -> None:
        """Close the connection. Never raises."""
        connection, self._connection, self._confirming = self._connection, None, None
        if connection is not None:
            with suppress(*FAILED):
                async with asyncio.timeout(self._timeout_s):
                    await connection.close()


def _is_open(connection: aio_pika.abc.AbstractConnection) -> bool:
    """Whether a connection can be used: ``is_closed`` stays false when the broker ends it."""
    transport = connection.transport
    return transport is not None and transport.connection.is_opened


def shown_address(url: str) -> str:
    """Return host, port and virtual host of a URL, without the password.

    Raises:
        ConfigurationError: it is not a URL of a broker.
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in {"amqp", "amqps"} or not parts.hostname or port == -1:
        raise ConfigurationError(
            "the address of the broker has the form amqp://USER:PASSWORD@HOST:PORT/VHOST (amqps:// "
            "with TLS)"
        )
    shown = parts.hostname if port is None else f"{parts.hostname}:{port}"
    return f"{shown}{parts.path.rstrip('/')}"
