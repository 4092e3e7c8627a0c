"""A connection to one RabbitMQ node by the stream protocol; the only importer of ``rstream``.

Rule 1: every exception of the client leaves this module as one of ``eventproc.errors``.
Rule 2: when a connection ends, for whatever reason, each of its feeds ends with an error, and each
request under way fails. The client itself leaves its requests waiting, does not report a frame that
it cannot decode, and only logs that heartbeats are missing.
Rule 3: the number of a subscription is used again only if a broker's answer shows that it is free.
The broker may have executed a cancelled request, and refuses a second subscription with the same
number.
"""

import asyncio
import math
import ssl
import time
import zlib
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from rstream import schema
from rstream.client import Client
from rstream.constants import Key, OffsetType, T
from rstream.exceptions import LeaderNotAvailable, ServerError, SubscriptionIDAlreadyExists

from eventproc.errors import SourceError, SourceRejectedError, SourceUnavailableError
from eventproc.sources.rabbitmq.streams.address import StreamAddress
from eventproc.sources.rabbitmq.streams.chunk import EVENT_OVERHEAD_BYTES, Chunk
from eventproc.sources.rabbitmq.streams.credit import FIRST as FIRST_CREDIT
from eventproc.sources.rabbitmq.streams.errors import STREAM_MISSING, error_for
from eventproc.sources.rabbitmq.streams.feed import Feed

Answer = TypeVar("Answer")

SUBSCRIPTIONS_MAX: Final = 200
"""Most subscriptions of a connection; an id has one byte."""

FRAME_MAX: Final = 1024 * 1024
CLOSE_MAX_S: Final = 0.5
"""Longest time to send a close frame, and then to close the socket."""

EARLIEST: Final = schema.OffsetSpec(OffsetType.FIRST)
NEWEST: Final = schema.OffsetSpec(OffsetType.LAST)

_LISTENER: Final = "listener"
_HEARTBEATS: Final = "heartbeat_sender"
_DELIVERY: Final = 0
"""The name of the only handler of chunks. With one for each subscription, the client would queue
each chunk for all of them."""


@dataclass
class _PartitionsOf310(schema.Frame):
    """The answer to a request for partitions from RabbitMQ 3.10, which has the key of the request.

    The client finds the class of a frame in a registry by its key. There this class replaces the
    request's, which no broker sends.
    """

    key = Key.Partitions
    correlation_id: int = field(metadata={"type": T.uint32})
    response_code: int = field(metadata={"type": T.uint16})
    streams: list[str] = field(metadata={"type": [T.string]})


_PartitionsOf310.prepare()  # type: ignore[no-untyped-call]


def at_offset(offset: int) -> schema.OffsetSpec:
    """Return where a subscription begins: at the chunk that contains this offset."""
    return schema.OffsetSpec.from_params(OffsetType.OFFSET, offset)


def at_time(time_ms: int) -> schema.OffsetSpec:
    """Return where a subscription begins: at the first chunk of this time or later."""
    return schema.OffsetSpec.from_params(OffsetType.TIMESTAMP, time_ms)


class _Client(Client):
    """The client; it also reports every end of its connection, and then closes its socket."""

    def __init__(
        self, host: str, port: int, heartbeat_s: int, ssl_context: ssl.SSLContext | None
    ) -> None:
        super().__init__(
            host,
            port,
            ssl_context=ssl_context,
            frame_max=FRAME_MAX,
            heartbeat=heartbeat_s,
            connection_name="eventproc",
            connection_closed_handler=lambda _: None,
        )
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[SourceError] = loop.create_future()
        """Done when the connection has ended, with the reason."""

    def start_task(self, name: str, coro: Awaitable[None]) -> None:
        super().start_task(name, self._watched(coro) if name == _LISTENER else coro)

    async def _watched(self, listening: Awaitable[None]) -> None:
        """Read frames until the connection ends, and note why it did."""
        text = "the broker closed the connection"
        try:
            await listening
        except Exception as error:  # noqa: BLE001 - it ends the connection, which reports it
            text = f"the connection ended: {error!r}"
        finally:
            self.fail(SourceUnavailableError(text))

    def fail(self, error: SourceError) -> None:
        """Set the reason of the end. Later calls do not replace the first reason."""
        if not self.ended.done():
            self.ended.set_result(error)

    @property
    def patience_s(self) -> float:
        """How long it may be silent; the broker may ask for other heartbeats, or for none."""
        return 2.0 * self._heartbeat or math.inf

    @property
    def received_at_s(self) -> float:
        """When the last frame was received, by the monotonic clock."""
        return float(self._last_heartbeat)

    async def shut(self) -> None:
        """Disconnect. ``close`` would sleep, wait for a silent broker, and leak a broken socket."""
        if self.is_started and not self.ended.done():
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_MAX_S):
                    await self.send_frame(schema.Close(self._corr_id_seq.next(), 1, "OK"))
        self.fail(SourceUnavailableError("the source is closed"))
        for task in (_HEARTBEATS, _LISTENER, f"run_delivery_handlers_{_DELIVERY}"):
            with suppress(Exception):
                await self.stop_task(task)
        if self._conn is not None:
            with suppress(OSError, TimeoutError, AttributeError):
                async with asyncio.timeout(CLOSE_MAX_S):
                    await self._conn.close()


class Connection:
    """A connection to one node, for any number of requests and up to 200 subscriptions."""

    def __init__(self, address: StreamAddress, host: str, port: int, heartbeat_s: int) -> None:
        """Build a connection; ``open`` connects."""
        self._address = address
        context = ssl.create_default_context() if address.is_tls else None
        self._client = _Client(host, port, heartbeat_s, context)
        self._where = f"{host}:{port}"
        self._taken: set[int] = set()
        """The numbers of subscriptions that the broker may have."""

        self._feeds: dict[int, Feed] = {}
        self._probes: dict[int, list[Chunk]] = {}
        self._watching: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect and log in.

        Raises:
            SourceUnavailableError: no answer; try again.
            SourceRejectedError: the credential is refused.
        """
        address, client = self._address, self._client
        try:
            await client.start()
        except (OSError, TimeoutError) as error:
            raise SourceUnavailableError(
                f"connecting to {self._where} failed: {error!r}. Does a broker with streams listen "
                "there? `rabbitmq-plugins enable rabbitmq_stream` opens port 5552; TLS has another"
            ) from error
        # This name replaces the client's own handler, which raises an error.
        client.add_handler(schema.Close, self._on_close, name="_on_close")
        client.add_handler(schema.Deliver, self._on_deliver, name=str(_DELIVERY))
        client.add_handler(schema.MetadataUpdate, self._on_metadata, name="metadata")
        await client.run_queue_listener_task(_DELIVERY, self._on_deliver)
        try:
            await self._ask(
                "connecting",
                client.authenticate(address.virtual_host, address.username, address.password),
            )
        except SourceRejectedError:
            raise
        except SourceUnavailableError as error:
            raise SourceUnavailableError(
                f"{error}. Is it the port of streams (5552), and not that of AMQP (5672)? With "
                "TLS (5551) the address begins with rabbitmq-stream+tls://"
            ) from error
        self._watching = asyncio.create_task(self._watch())

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended."""
        return self._client.ended.done()

    @property
    def has_room(self) -> bool:
        """Whether it can have another subscription."""
        return len(self._taken) < SUBSCRIPTIONS_MAX

    async def close(self) -> None:
        """Disconnect; each feed ends. Never raises."""
        watching, self._watching = self._watching, None
        await self._client.shut()
        if watching is not None:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        self._end_all(self._client.ended.result())

    # Requests.

    async def partitions(self, super_stream: str) -> list[str]:
        """Return the streams of a super stream, in order; an empty list if there is none."""
        found = await self._ask(
            f"asking for the partitions of {super_stream!r}", self._client.partitions(super_stream)
        )
        return list(found)

    async def has_stream(self, stream: str) -> bool:
        """Return whether the stream exists."""
        return await self._ask(f"asking for stream {stream!r}", self._client.stream_exists(stream))

    async def leader(self, stream: str) -> tuple[str, int]:
        """Return host and port of the node that leads a stream."""
        leader, _ = await self._ask(
            f"asking which node leads stream {stream!r}",
            self._client.query_leader_and_replicas(stream),
        )
        return leader.host, leader.port

    async def probe(self, stream: str, begin: schema.OffsetSpec) -> Chunk | None:
        """Return the first chunk from *begin* on; ``None`` if there is none.

        The broker sends an existing chunk before it answers a later request, so no wait is needed.
        """
        what = f"reading from stream {stream!r}"
        number = self._take_number()
        chunks = self._probes[number] = []
        try:
            await self._ask(what, self._client.subscribe(stream, number, begin, 1))
            await self._ask(what, self._client.unsubscribe(number))
        except BaseException as error:
            del self._probes[number]
            self._free_number(number, error)
            raise
        del self._probes[number]
        self._free_number(number)
        return chunks[0] if chunks else None

    async def subscribe(self, stream: str, feed: Feed) -> int:
        """Fill a feed from its start on, within its credit; return the subscription's number."""
        number = self._take_number()
        self._feeds[number] = feed
        try:
            await self._ask(
                f"subscribing to stream {stream!r}",
                self._client.subscribe(stream, number, at_offset(feed.start), FIRST_CREDIT),
            )
        except BaseException as error:
            self._forget(number, feed, error)
            raise
        return number

    async def unsubscribe(self, number: int, feed: Feed) -> None:
        """End a subscription, if it has not ended. Never raises."""
        if self._feeds.get(number) is feed:
            try:
                await self._ask("unsubscribing", self._client.unsubscribe(number))
            except SourceError as error:
                self._forget(number, feed, error)
            else:
                self._forget(number, feed)

    async def grant(self, number: int, chunks: int) -> None:
        """Let the broker send so many chunks more."""
        with suppress(OSError):  # the end of the connection ends the feed
            await self._client.credit(number, chunks)

    async def _ask(self, what: str, request: Coroutine[Any, Any, Answer]) -> Answer:
        """Await a request, but not longer than the connection lasts."""
        asking, ended = asyncio.ensure_future(request), self._client.ended
        either: tuple[asyncio.Future[Any], ...] = (asking, ended)
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise SourceUnavailableError(f"{what} at {self._where}: {ended.result()}")
            return asking.result()
        except ServerError as error:
            raise error_for(f"{what} at {self._where}", error.code) from error
        except LeaderNotAvailable as error:
            raise SourceUnavailableError(f"{what} at {self._where}: {error}") from error
        except TimeoutError as error:
            raise SourceUnavailableError(f"{what} at {self._where}: no answer") from error
        except (OSError, AssertionError, ValueError) as error:
            raise SourceUnavailableError(f"{what} at {self._where}: {error!r}") from error
        finally:
            if not asking.done():
                asking.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await asking

    def _forget(self, number: int, feed: Feed, error: BaseException | None = None) -> None:
        """Deliver nothing more to a feed, unless the broker has just ended its subscription."""
        if self._feeds.get(number) is feed:
            del self._feeds[number]
            self._free_number(number, error)

    def _take_number(self) -> int:
        number = next(number for number in range(256) if number not in self._taken)
        self._taken.add(number)
        return number

    def _free_number(self, number: int, error: BaseException | None = None) -> None:
        """Let a number be used again, unless after the error the broker may still use it."""
        cause = None if error is None else error.__cause__
        is_answered = error is None or isinstance(cause, ServerError)
        if is_answered and not isinstance(cause, SubscriptionIDAlreadyExists):
            self._taken.discard(number)

    # What the broker sends.

    def _on_deliver(self, frame: schema.Deliver) -> None:
        number = frame.subscription_id
        feed, probe = self._feeds.get(number), self._probes.get(number)
        if feed is None and probe is None:
            return  # the subscription has just ended
        try:
            chunk = _chunk_of(frame)
        except (IndexError, TypeError, ValueError, zlib.error, OSError) as error:
            failure = _unreadable(frame, error)
            if feed is not None:
                feed.end(failure)
            return
        if feed is not None:
            feed.put(chunk)
        elif probe is not None:
            probe.append(chunk)

    def _on_close(self, frame: schema.Close) -> None:
        """Note why the broker is about to close the connection."""
        self._client.fail(SourceUnavailableError(f"the broker closes it: {frame.reason}"))

    def _on_metadata(self, frame: schema.MetadataUpdate) -> None:
        """End the feeds of a stream whose subscriptions the broker has just ended."""
        stream = frame.metadata_info.stream
        for number, feed in list(self._feeds.items()):
            if feed.stream == stream:
                self._forget(number, feed)
                feed.end(error_for(f"stream {stream!r}", frame.metadata_info.code))

    async def _watch(self) -> None:
        """End the connection if it is silent for too long, and the feeds when it has ended."""
        ended, patience_s = self._client.ended, self._client.patience_s
        while not ended.done():
            silent_s = time.monotonic() - self._client.received_at_s
            if silent_s >= patience_s:
                self._client.fail(SourceUnavailableError(f"no sign of life for {silent_s:.0f} s"))
                break
            left_s = None if patience_s == math.inf else patience_s - silent_s
            await asyncio.wait({ended}, timeout=left_s)
        self._end_all(ended.result())
        await self._client.shut()

    def _end_all(self, error: SourceError) -> None:
        feeds, self._feeds = list(self._feeds.values()), {}
        for feed in feeds:
            feed.end(type(error)(f"reading stream {feed.stream!r} at {self._where}: {error}"))


def _chunk_of(frame: schema.Deliver) -> Chunk:
    messages = frame.get_messages()
    size = sum(map(len, messages)) + EVENT_OVERHEAD_BYTES * len(messages)
    return Chunk(frame.chunk_first_offset, frame.timestamp, messages, size)


def _unreadable(frame: schema.Deliver, error: Exception) -> SourceError:
    return SourceRejectedError(
        f"the chunk at offset {frame.chunk_first_offset} cannot be read: {error!r}. If its "
        "publisher compresses with anything but gzip, register the codec: "
        "`rstream.compression.StreamCompressionCodecs.register_codec`"
    )


__all__ = ["EARLIEST", "NEWEST", "STREAM_MISSING", "Connection", "at_time"]
