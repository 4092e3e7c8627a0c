"""``EventHubConsumerClient`` of ``azure.eventhub``, for threads, on an ``EventProcessor``."""

import asyncio
from collections.abc import Callable
from typing import Unpack

from azure.eventhub import EventData, PartitionContext
from azure.eventhub import EventHubConsumerClient as AzureConsumerClient

from eventproc._base.threads import LoopThread
from eventproc.compat._caller import ThreadCaller
from eventproc.compat._consumer import Consumer
from eventproc.compat._handler import Callbacks
from eventproc.compat._partition import ThreadsContext
from eventproc.compat._receive import Receive, ReceiveOptions, callbacks_of
from eventproc.compat._receiving import Receiving
from eventproc.compat._settings import ClientSettings


class _Call:
    """A call of ``receive`` whose processor runs on an event loop in a thread of its own."""

    def __init__(self, settings: ClientSettings, receive: Receive, callbacks: Callbacks) -> None:
        """Build the processor; raises ``ConfigurationError`` if the arguments cannot work."""
        self._loop = LoopThread("eventproc-compat")
        self._callbacks = callbacks

        async def build() -> Receiving:
            return Receiving(settings, receive, callbacks, ThreadsContext, home=None)

        try:
            self._receiving = self._loop.call(build())
        except BaseException:
            self._loop.close()
            raise

    def run(self, caller: ThreadCaller) -> None:
        """Make the callbacks in this thread until ``close``; an exception here closes it, too.

        A second exception, as of another Ctrl+C, ends it without the other callbacks.
        """
        whole = asyncio.run_coroutine_threadsafe(self._receiving.run(), self._loop.loop)
        try:
            caller.work(whole)
        except BaseException:
            self.close()
            caller.work(whole)
            raise
        finally:
            self._loop.call_soon(caller.end)  # No call is waited for that nobody makes.
            self._loop.close()

    def close(self) -> None:
        """Let ``run`` end; a callback that calls this is the last one for an event."""
        self._callbacks.caller.is_over = True
        self._loop.call_soon(self._receiving.close)


class EventHubConsumerClient(Consumer, AzureConsumerClient):
    """Azure's client for threads, whose ``receive`` runs an ``EventProcessor``.

    Constructors and all other methods are Azure's. See docs/migrate.md.
    """

    def receive(  # type: ignore[override]  # it takes others, too
        self,
        on_event: Callable[[PartitionContext, EventData | None], None],
        **options: Unpack[ReceiveOptions],
    ) -> None:
        """Call *on_event* with each event, and without one after each *max_wait_time*.

        Blocks until the client is closed in another thread or in a callback. All callbacks run in
        this thread, one at a time. Other keyword arguments are ignored, as by Azure's client.

        Raises:
            ValueError: an argument cannot work, or another call receives the same partitions.
        """
        caller = ThreadCaller()
        callbacks = callbacks_of(on_event, options, caller, takes_batches=False)
        self._run(Receive.of(options), callbacks, caller)

    def receive_batch(  # type: ignore[override]  # likewise
        self,
        on_event_batch: Callable[[PartitionContext, list[EventData]], None],
        *,
        max_batch_size: int = 300,
        **options: Unpack[ReceiveOptions],
    ) -> None:
        """Call *on_event_batch* with a full batch, or after *max_wait_time* with what there is.

        Blocks as ``receive``.

        Raises:
            ValueError: an argument cannot work, or another call receives the same partitions.
        """
        caller = ThreadCaller()
        callbacks = callbacks_of(on_event_batch, options, caller, takes_batches=True)
        receive = Receive.of(options, batch_size_max=max_batch_size, collects=True)
        self._run(receive, callbacks, caller)

    def _run(self, receive: Receive, callbacks: Callbacks, caller: ThreadCaller) -> None:
        with self._registry.receiving(receive.partition_id) as noted:
            call = _Call(self._settings, receive, callbacks)
            noted.on_close(call.close)
            call.run(caller)

    def close(self) -> None:
        """Let ``receive`` and ``receive_batch`` end; return at once, as Azure's client does."""
        self._registry.close()
        super().close()
