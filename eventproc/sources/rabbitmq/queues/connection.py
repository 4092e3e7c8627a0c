"""The connection of aio-pika, as a ``Broker`` uses it."""

from asyncio import StreamReader, StreamWriter
from typing import Any, cast

import aio_pika
from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory

from eventproc.sources.rabbitmq.queues.frames import ReadableFrames


class BrokerConnection(aio_pika.Connection):
    """A connection that only its owner closes, and that no message breaks."""

    def __init__(self, url: Any, **options: Any) -> None:  # noqa: ANN401 - the client's
        """Take what ``aio_pika.connect`` passes."""
        super().__init__(url, **options)
        is_over_tls = self.url.scheme == "amqps"
        factory = TLSTransportFactory() if is_over_tls else TCPTransportFactory()
        self.kwargs["transport_factory"] = _ReadableTransport(factory)

    def __del__(self) -> None:
        """Do nothing: the client's method starts a task, and Python may call it in any thread."""


class _ReadableTransport(TransportFactory):
    """Opens a transport that repairs frames which the client cannot read."""

    def __init__(self, factory: TransportFactory) -> None:
        self._factory = factory

    async def create(
        self,
        url: Any,  # noqa: ANN401 - the client's
        **kwargs: Any,  # noqa: ANN401 - the client's
    ) -> tuple[StreamReader, StreamWriter]:
        reader, writer = await self._factory.create(url, **kwargs)
        return cast("StreamReader", ReadableFrames(reader)), writer
