"""RabbitMQ streams as an ``EventSource``."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

from eventproc.errors import (
    ConfigurationError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)
from eventproc.models import EventPosition, OffsetFormat, PartitionProperties
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.settings import SECRET, checked
from eventproc.sources.amqp.fields import to_time
from eventproc.sources.log_offsets import last_ms_before
from eventproc.sources.rabbitmq.streams.address import address_of
from eventproc.sources.rabbitmq.streams.client import EARLIEST, NEWEST, Connection, at_time
from eventproc.sources.rabbitmq.streams.connections import Connections
from eventproc.sources.rabbitmq.streams.event import key_reader
from eventproc.sources.rabbitmq.streams.feed import NO_TIME, Feed
from eventproc.sources.rabbitmq.streams.options import StreamOptions
from eventproc.sources.rabbitmq.streams.partitions import ONLY, streams_by_partition
from eventproc.sources.rabbitmq.streams.position import OFFSETS, StreamBounds
from eventproc.sources.rabbitmq.streams.receiver import StreamReceiver

T = TypeVar("T")


class RabbitStreams(EventSource):
    """Reads events from a super stream, or from a single stream. It connects when it is opened.

    Each stream of a super stream is a partition. The processor's store has ownership and
    checkpoints: the source stores no offset at the broker, and does not use RabbitMQ's single
    active consumers. A consumer group is only a name under which records are kept.

    Args:
        url: ``rabbitmq-stream://USER:PASSWORD@HOST:5552/VIRTUAL_HOST``, with several servers
            separated by commas; ``rabbitmq-stream+tls://`` for TLS. A percent sign quotes special
            characters, as in every URL.
        stream: the name of the super stream, or of the stream.
        streams: the streams that are partitions of ``stream``, if the broker has no super stream of
            this name.
        namespace: a name for the broker, under which records are kept. The default is
            ``HOST:PORT``, or ``VIRTUAL_HOST@HOST:PORT``, if there is only one server.
        options: how to read.

    Raises:
        ConfigurationError: a name is not valid.
    """

    @checked
    def __init__(
        self,
        url: Annotated[str, SECRET],
        *,
        stream: str,
        streams: Sequence[str] = (),
        namespace: str | None = None,
        options: StreamOptions | None = None,
    ) -> None:
        self._address = address_of(url, stream, namespace)
        self._given = streams_by_partition(stream, streams)
        self._options = options or StreamOptions()
        self._key = key_reader(self._options.key)
        self._connections: Connections | None = None
        self._streams: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._address.shown!r}, {self._address.stream!r})"

    @property
    def fully_qualified_namespace(self) -> str:
        return self._address.namespace

    @property
    def eventhub_name(self) -> str:
        return self._address.stream

    @property
    def offset_format(self) -> OffsetFormat:
        return OffsetFormat.STREAM

    async def open(self) -> None:
        if self._connections is None:
            self._connections = Connections(self._address, self._options)

    async def close(self) -> None:
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.close()

    async def check_consumer_group(self, name: str) -> None:
        try:
            partition_ids = await self.partition_ids()
            await self.partition_properties(partition_ids[0])
        except (SourceRejectedError, SuspectSettingError) as error:
            raise ConfigurationError(
                f"stream {self._address.stream!r} at {self._address.shown} cannot be read in "
                f"consumer group {name!r}. {error}. Check the address, the stream's name, and the "
                "user's rights"
            ) from error

    async def partition_ids(self) -> Sequence[str]:
        what = f"requesting the partitions of {self!r} failed"
        return tuple(await self._within(what, self._find_streams()))

    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        what = f"requesting properties of partition {partition_id!r} from {self!r} failed"
        bounds = await self._within(what, self._bounds_of(partition_id))
        last = bounds.high - 1
        is_empty = bounds.newest_ms is None
        return PartitionProperties(
            partition_id=partition_id,
            beginning_sequence_number=bounds.low,
            last_enqueued_sequence_number=last,
            last_enqueued_offset="" if is_empty else OFFSETS.text(last),
            last_enqueued_time=None if bounds.newest_ms is None else to_time(bounds.newest_ms),
            is_empty=is_empty,
        )

    async def open_receiver(
        self,
        consumer_group: str,  # noqa: ARG002 - RabbitMQ has none
        partition_id: str,
        position: EventPosition,
    ) -> PartitionReceiver:
        what = f"opening partition {partition_id!r} of {self!r} failed"
        return await self._within(what, self._open_receiver(partition_id, position))

    async def _open_receiver(self, partition_id: str, position: EventPosition) -> PartitionReceiver:
        stream = await self._stream_of(partition_id)
        connection = await self._open_connections().to_leader(stream)
        bounds = await _bounds(connection, stream)
        start, from_ms = OFFSETS.start(partition_id, position, bounds), NO_TIME
        if position.enqueued_time is not None:
            from_ms = 1 + last_ms_before(position.enqueued_time, is_inclusive=position.is_inclusive)
            chunk = await connection.probe(stream, at_time(from_ms))
            start = bounds.high if chunk is None else chunk.first
        feed = Feed(stream, start, bounds, self._options, key=self._key, from_ms=from_ms)
        number = await connection.subscribe(stream, feed)
        ask_bounds = partial(self._bounds_of, partition_id)
        return StreamReceiver(connection, number, feed, ask_bounds)

    async def _find_streams(self) -> Mapping[str, str]:
        """Request the partitions, and store them for ``_stream_of``."""
        hub = self._address.stream
        connection = await self._open_connections().any()
        for stream in self._given.values():
            if not await connection.has_stream(stream):
                raise SourceRejectedError(f"there is no stream {stream!r}: create it")
        streams = () if self._given else await connection.partitions(hub)
        if self._given:
            self._streams = self._given
        elif streams:
            self._streams = streams_by_partition(hub, streams)
        elif await connection.has_stream(hub):
            self._streams = {ONLY: hub}
        else:
            raise SourceRejectedError(
                f"virtual host {self._address.virtual_host!r} has neither a super stream nor a "
                f"stream {hub!r}: create it, for example by `rabbitmq-streams add_super_stream`"
            )
        return self._streams

    async def _stream_of(self, partition_id: str) -> str:
        stream = self._streams.get(partition_id)
        if stream is None:
            stream = (await self._find_streams()).get(partition_id)
        if stream is None:
            raise SourceRejectedError(
                f"stream {self._address.stream!r} has no partition {partition_id!r}"
            )
        return stream

    async def _bounds_of(self, partition_id: str) -> StreamBounds:
        stream = await self._stream_of(partition_id)
        return await _bounds(await self._open_connections().to_leader(stream), stream)

    async def _within(self, what: str, request: Coroutine[Any, Any, T]) -> T:
        """Await a request for no longer than the options allow; name it in its errors."""
        limit_s = self._options.connect_timeout.total_seconds()
        try:
            async with asyncio.timeout(limit_s):
                return await request
        except TimeoutError as error:
            raise SourceUnavailableError(f"{what}: no answer within {limit_s:g} s") from error
        except (SourceRejectedError, SourceUnavailableError) as error:
            raise type(error)(f"{what}: {error}") from error

    def _open_connections(self) -> Connections:
        if self._connections is None:
            raise RuntimeError("the source is not open: use `async with`, or call open() first")
        return self._connections


async def _bounds(connection: Connection, stream: str) -> StreamBounds:
    first = await connection.probe(stream, EARLIEST)
    last = await connection.probe(stream, NEWEST)
    return StreamBounds.of(first, last)
