"""Open publishers of this process, which its tasks share.

They stay open, because connecting to an event hub takes longer than publishing a small batch.

Rule: a publisher that failed is closed, and not used again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import cache
from typing import Final

from eventproc._base.logs import get_logger
from eventproc._base.retries import Attempts
from eventproc._base.threads import LoopThread
from eventproc.errors import SourceUnavailableError
from eventproc.models import OutgoingEvent
from eventproc.ports import EventPublisher
from eventproc.sources.eventhubs._publisher import BACKOFF
from spark_integration._option_names import naming_options
from spark_integration._publish.targets import Target

OPEN_MAX: Final = 4
"""Most publishers that stay open in a process; the one that was used least recently is closed."""


class Connections:
    """Publishers by target, on an event loop in a thread of their own."""

    def __init__(self) -> None:
        self._thread = LoopThread("eventproc-publish")
        self._open: OrderedDict[Target, tuple[EventPublisher, AsyncExitStack]] = OrderedDict()

    def publish(self, target: Target, events: Sequence[OutgoingEvent], patience: timedelta) -> None:
        """Publish events, and return when all are acknowledged; connect first if necessary.

        Raises:
            ConfigurationError: the target cannot work on this machine.
            EventRefusedError, SourceError: see ``EventPublisher.publish``.
        """
        self._thread.call(self._publish(target, events, patience))

    def close(self) -> None:
        """Close all publishers, and end the thread."""
        self._thread.call(self._close_beyond(0))
        self._thread.close()

    async def _publish(
        self, target: Target, events: Sequence[OutgoingEvent], patience: timedelta
    ) -> None:
        with naming_options():
            connect = Attempts(patience, BACKOFF, SourceUnavailableError)
            publisher = await connect(self._publisher, target)
            try:
                await publisher.publish(events, patience=patience)
            except BaseException:
                await self._close(target)
                raise

    async def _publisher(self, target: Target) -> EventPublisher:
        if target not in self._open:
            stack = AsyncExitStack()
            publisher: EventPublisher = await stack.enter_async_context(target.make())
            self._open[target] = publisher, stack
            await self._close_beyond(OPEN_MAX)
        self._open.move_to_end(target)
        return self._open[target][0]

    async def _close_beyond(self, count: int) -> None:
        while len(self._open) > count:
            await self._close(next(iter(self._open)))

    async def _close(self, target: Target) -> None:
        """Close a publisher; only log an error of it, as it is no error of a task's rows."""
        _, stack = self._open.pop(target)
        try:
            await stack.aclose()
        except Exception as error:  # noqa: BLE001 - a publisher of the user's may raise any
            get_logger("eventproc.spark").warning("publisher_close_failed", error=repr(error))


@cache
def connections() -> Connections:
    """Return the connections of this process. They stay open until Spark ends it."""
    return Connections()
