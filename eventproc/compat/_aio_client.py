"""``EventHubConsumerClient`` of ``azure.eventhub.aio`` on an ``EventProcessor``."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Self, Unpack, cast

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient as AzureConsumerClient
from azure.eventhub.aio import PartitionContext

from eventproc.compat._caller import Delivery, LoopCaller
from eventproc.compat._handler import Callbacks
from eventproc.compat._partition import AioContext
from eventproc.compat._receive import Receive, ReceiveOptions, callbacks_of
from eventproc.compat._receiving import Receiving
from eventproc.compat._registry import Registry
from eventproc.compat._settings import ClientSettings

_in_callback: ContextVar[bool] = ContextVar("in_callback", default=False)


class _Caller(LoopCaller):
    """Notes what runs in a callback: ``close`` there does not wait for the callback's end."""

    async def call(self, function: Callable[..., Any], *args: object) -> None:
        _in_callback.set(True)
        await super().call(function, *args)

    async def each(self, delivery: Delivery) -> None:
        _in_callback.set(True)
        await super().each(delivery)


class EventHubConsumerClient(AzureConsumerClient):
    """Azure's client for an event loop, whose ``receive`` runs an ``EventProcessor``.

    Constructors and all other methods are Azure's. See docs/migrate.md.
    """

    def __init__(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        credential: Any,  # noqa: ANN401 - any of Azure's
        **kwargs: Any,  # noqa: ANN401 - Azure's
    ) -> None:
        """Take the arguments of Azure's client; nothing connects.

        Raises:
            ConfigurationError: one cannot be kept; it is a ``ValueError``.
        """
        super().__init__(
            fully_qualified_namespace, eventhub_name, consumer_group, credential, **kwargs
        )
        self._settings = ClientSettings(
            fully_qualified_namespace, eventhub_name, consumer_group, credential, kwargs
        )
        self._registry = Registry(consumer_group)
        self._running: set[asyncio.Future[None]] = set()

    @classmethod
    def from_connection_string(
        cls,
        conn_str: str,
        consumer_group: str,
        **kwargs: Any,  # noqa: ANN401 - Azure's
    ) -> Self:
        """Build a client from a connection string; other arguments are those of Azure's client.

        Raises:
            ValueError: the string or an argument cannot work.
        """
        return cast(Self, super().from_connection_string(conn_str, consumer_group, **kwargs))

    async def receive(
        self,
        on_event: Callable[[PartitionContext, EventData | None], Awaitable[None]],
        **options: Unpack[ReceiveOptions],
    ) -> None:
        """Call *on_event* with each event, and without one after each *max_wait_time*.

        Ends when the client is closed or this call is cancelled. All callbacks are coroutine
        functions.

        Raises:
            ValueError: an argument cannot work, or another call receives the same partitions.
        """
        _refuse_others(options)
        callbacks = callbacks_of(on_event, options, _Caller(), takes_batches=False)
        await self._run(Receive.of(options), callbacks)

    async def receive_batch(
        self,
        on_event_batch: Callable[[PartitionContext, list[EventData]], Awaitable[None]],
        *,
        max_batch_size: int = 300,
        **options: Unpack[ReceiveOptions],
    ) -> None:
        """Call *on_event_batch* with what was received, and with ``[]`` after *max_wait_time*.

        Ends as ``receive``.

        Raises:
            ValueError: an argument cannot work, or another call receives the same partitions.
        """
        _refuse_others(options)
        if max_batch_size <= 0:
            raise ValueError("max_batch_size must be larger than 0")
        callbacks = callbacks_of(on_event_batch, options, _Caller(), takes_batches=True)
        await self._run(Receive.of(options, batch_size_max=max_batch_size), callbacks)

    async def _run(self, receive: Receive, callbacks: Callbacks) -> None:
        with self._registry.receiving(receive.partition_id):
            home = asyncio.get_running_loop()
            receiving = Receiving(self._settings, receive, callbacks, AioContext, home=home)
            self._registry.note(receive.partition_id, receiving.close)
            ended: asyncio.Future[None] = home.create_future()
            self._running.add(ended)
            try:
                await receiving.run()
            finally:
                self._running.discard(ended)
                ended.set_result(None)

    async def close(self) -> None:
        """End ``receive`` and ``receive_batch``, and wait until they have closed their partitions.

        In a callback: do not wait.
        """
        self._registry.close()
        if self._running and not _in_callback.get():
            await asyncio.wait(self._running)
        await super().close()


def _refuse_others(options: ReceiveOptions) -> None:
    for name in options.keys() - ReceiveOptions.__annotations__.keys():
        raise TypeError(f"receive() got an unexpected keyword argument {name!r}")
