"""``EventHubConsumerClient`` of ``azure.eventhub.aio`` on an ``EventProcessor``."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Unpack

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient as AzureConsumerClient
from azure.eventhub.aio import PartitionContext

from eventproc.compat._caller import Delivery, LoopCaller
from eventproc.compat._consumer import Consumer
from eventproc.compat._handler import Callbacks
from eventproc.compat._partition import AioContext
from eventproc.compat._receive import Receive, ReceiveOptions, callbacks_of
from eventproc.compat._receiving import Receiving

_in_callback: ContextVar[bool] = ContextVar("in_callback", default=False)


class _Caller(LoopCaller):
    """Notes what runs in a callback: ``close`` there does not wait for the callback's end."""

    async def call(self, function: Callable[..., Any], *args: object) -> None:
        _in_callback.set(True)
        await super().call(function, *args)

    async def each(self, delivery: Delivery) -> None:
        _in_callback.set(True)
        await super().each(delivery)


class EventHubConsumerClient(Consumer, AzureConsumerClient):
    """Azure's client for an event loop, whose ``receive`` runs an ``EventProcessor``.

    Constructors and all other methods are Azure's. See docs/migrate.md.
    """

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
        with self._registry.receiving(receive.partition_id) as noted:
            home = asyncio.get_running_loop()
            receiving = Receiving(self._settings, receive, callbacks, AioContext, home=home)
            noted.on_close(receiving.close)
            await receiving.run()

    async def close(self) -> None:
        """End ``receive`` and ``receive_batch``, and wait until they have closed their partitions.

        In a callback: do not wait.
        """
        ends = self._registry.close()
        if ends and not _in_callback.get():
            await asyncio.wait(map(asyncio.wrap_future, ends))
        await super().close()


def _refuse_others(options: ReceiveOptions) -> None:
    for name in options.keys() - ReceiveOptions.__annotations__.keys():
        raise TypeError(f"receive() got an unexpected keyword argument {name!r}")
