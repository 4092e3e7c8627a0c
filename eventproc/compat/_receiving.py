"""One call of ``receive``: a processor that serves the callbacks until the client is closed."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from azure.eventhub.exceptions import ConnectionLostError

from eventproc._base.logs import ConditionLogger, get_logger
from eventproc._base.tasks import end
from eventproc._runtime.processors import EventProcessor
from eventproc.compat._checkpoints import Checkpoints
from eventproc.compat._handler import CallbackHandler, Callbacks
from eventproc.compat._partition import AioContext, Partition, ThreadsContext
from eventproc.compat._receive import Receive
from eventproc.compat._settings import ClientSettings
from eventproc.errors import StoreUnavailableError
from eventproc.models._statistics import ProcessorStatistics

WATCH_INTERVAL_S: Final = 0.5

LINK_FAILING_S: Final = 5.0
"""A link that fails for so long is reported to ``on_error``. It is opened again in any case."""

MakeContext = type[AioContext] | type[ThreadsContext]


class Receiving:
    """Runs a processor for the callbacks of one call; starts it again until it is closed."""

    def __init__(
        self,
        settings: ClientSettings,
        receive: Receive,
        callbacks: Callbacks,
        make_context: MakeContext,
        *,
        home: asyncio.AbstractEventLoop | None,
    ) -> None:
        """Build the processor, on the event loop that will run it; nothing connects.

        Args:
            settings: Those of the client.
            receive: What to receive.
            callbacks: The program's functions.
            make_context: The class of the contexts that they get.
            home: The event loop of the coroutines of the program's own store, if it has one.

        Raises:
            ConfigurationError: the arguments cannot work.
        """
        loop = asyncio.get_running_loop()
        self._callbacks = callbacks
        self._make_context = make_context
        self._group = settings.group
        self._retry_s = min(settings.interval_s, 30.0)
        self._checkpoints = Checkpoints(settings.store(receive, home), settings.group)
        self._contexts: dict[str, tuple[Partition, AioContext | ThreadsContext]] = {}
        self._clock: Callable[[], float] = loop.time
        self._closed = asyncio.Event()
        self._told: set[str] = set()
        """What ``on_error`` was told, and has not ended: partition ids, and "" for the store."""

        log = get_logger("eventproc.compat", eventhub_name=settings.group.eventhub_name)
        self._failure = ConditionLogger(log, "receiving_failed", "receiving_recovered")
        self._processor = EventProcessor(
            source=settings.source(receive),
            store=self._checkpoints,
            handler=lambda: CallbackHandler(callbacks, self._context, clock=self._clock),
            consumer_group=settings.group.name,
            config=settings.config(receive),
        )

    def close(self) -> None:
        """Let ``run`` end: the partitions close, and their ownership is released."""
        self._callbacks.caller.is_over = True
        self._closed.set()

    def _context(self, partition_id: str) -> tuple[Partition, AioContext | ThreadsContext]:
        if partition_id not in self._contexts:
            partition = Partition(partition_id, self._checkpoints)
            context = self._make_context(partition, self._group)
            self._contexts[partition_id] = partition, context
        return self._contexts[partition_id]

    async def run(self) -> None:
        """Receive until ``close``. Errors go to ``on_error``, and are tried again."""
        while not self._closed.is_set():
            try:
                await self._serve()
            except Exception as error:  # noqa: BLE001 - Azure's client raises none
                self._failure.note(is_error=True, error=str(error), retry_after_s=self._retry_s)
                await self._callbacks.tell(None, error)
                await self._until_closed(self._retry_s)

    async def _until_closed(self, within_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._closed.wait()

    async def _serve(self) -> None:
        starting = asyncio.ensure_future(self._processor.start())
        closing = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait([starting, closing], return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                return
            starting.result()
            self._failure.end()
            finished = asyncio.ensure_future(self._processor.finished())
            watching = asyncio.ensure_future(self._watch())
            try:
                await asyncio.wait(
                    [closing, finished, watching], return_when=asyncio.FIRST_COMPLETED
                )
                if watching.done():
                    watching.result()
            finally:
                await end([finished, watching])
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            await end([starting, closing])
            await self._processor.stop()

    async def _watch(self) -> None:
        """Serve failed partitions again after their pause, and tell of outages."""
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            now = self._processor.statistics()
            for partition_id in now.stopped:
                if self._clock() >= self._context(partition_id)[0].resume_at_s:
                    self._processor.resume(partition_id)
            await self._tell_outages(now)

    async def _tell_outages(self, now: ProcessorStatistics) -> None:
        errors: dict[str, Exception] = {
            pump.partition_id: ConnectionLostError(pump.receiver_error or "")
            for pump in now.pumps
            if pump.receiver_failing_seconds >= LINK_FAILING_S
        }
        if now.store_error:
            errors[""] = StoreUnavailableError(now.store_error)
        new = errors.keys() - self._told
        self._told = set(errors)
        for name in sorted(new):
            context = self._context(name)[1] if name else None
            await self._callbacks.tell(context, errors[name])
