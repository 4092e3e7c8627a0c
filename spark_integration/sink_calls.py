"""The calls of one handler, with everything that a processor does about failures.

Rule: a handler that fails for good fails the task. Spark then tries the task again, on the same
rows, and at last fails the query.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

from eventproc.config import Backoff
from eventproc.context import PartitionIdentity
from eventproc.delivery import Delivery
from eventproc.ending import Ending, GivenUpError, Trust
from eventproc.giving_up import GivingUp
from eventproc.handler import PartitionContext, PartitionHandler
from eventproc.logs import Logger
from eventproc.models import CloseReason, ReceivedEvent
from eventproc.ports import DeadLetterSink
from eventproc.retries import waits
from eventproc.statistics import Tally
from spark_integration.errors import HandlerFailedError
from spark_integration.sink_context import SparkPartitionContext
from spark_integration.sink_options import SinkOptions

TakeColumns = Callable[[PartitionContext, Any], Awaitable[None]]
"""``process_columns``: a handler that has it gets Arrow batches in Spark, and no events."""


class SinkCalls:
    """Calls the handler of one partition in one task."""

    def __init__(
        self,
        options: SinkOptions,
        identity: PartitionIdentity,
        *,
        context: SparkPartitionContext,
        dead_letters: DeadLetterSink | None,
        tally: Tally,
        log: Logger,
    ) -> None:
        handler = options.make_handler()
        self._take_columns: TakeColumns | None = getattr(handler, "process_columns", None)
        self._handler = _Remembering(handler)
        self._context = context
        clock = asyncio.get_running_loop().time
        ending = Ending(Trust(lambda: math.inf, clock))  # There is no lease that could run out.
        wait_s = waits(Backoff(), Random())  # noqa: S311 - a jitter, no secret
        self._delivery = Delivery(
            self._handler,
            policy=options.failure_policy,
            giving_up=GivingUp(
                identity,
                then=options.failure_policy.then,
                sink=dead_letters,
                ending=ending,
                wait_s=wait_s,
                tally=tally,
                log=log,
            ),
            ending=ending,
            wait_s=wait_s,
            tally=tally,
            log=log,
        )

    async def initialize(self) -> None:
        """Let the handler get ready. What it raises fails the task, which Spark tries again."""
        try:
            await self._handler.initialize(self._context)
        except Exception as error:
            raise self._failed("could not be set up", error) from error

    async def hand(self, events: Sequence[ReceivedEvent]) -> None:
        """Return when each of these events is handled, or given up as the options say.

        Raises:
            HandlerFailedError: the handler failed as often as it may.
        """
        try:
            await self._delivery.hand(events, self._context)
        except GivenUpError:
            error = self._handler.error
            raise self._failed("failed as often as it may", error) from error

    @property
    def takes_columns(self) -> bool:
        """Whether the handler has a ``process_columns``."""
        return self._take_columns is not None

    async def hand_columns(self, columns: object, last_number: int) -> None:
        """Hand over an Arrow batch; a failure is not tried again here, but by Spark.

        Raises:
            HandlerFailedError: the handler failed.
        """
        assert self._take_columns is not None
        self._context.begin_call()
        try:
            await self._take_columns(self._context, columns)
        except Exception as error:
            raise self._failed("failed on columns", error) from error
        finally:
            self._context.end_call(keeps_state=True)
        self._context.advance(last_number)

    async def close(self, reason: CloseReason) -> None:
        """Let the handler end."""
        try:
            await self._handler.close(self._context, reason)
        except Exception as error:
            raise self._failed("could not be closed", error) from error

    def _failed(self, what: str, error: Exception | None) -> HandlerFailedError:
        return HandlerFailedError(
            f"the handler of partition {self._context.partition_id!r} {what}: {error!r}"
        )


class _Remembering(PartitionHandler):
    """The user's handler, and the last error that it was told of."""

    def __init__(self, handler: PartitionHandler) -> None:
        self._handler = handler
        self.error: Exception | None = None

    async def initialize(self, context: PartitionContext) -> None:
        await self._handler.initialize(context)

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        await self._handler.process_events(context, events)

    async def process_error(self, context: PartitionContext, error: Exception) -> None:
        self.error = error
        await self._handler.process_error(context, error)

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        await self._handler.close(context, reason)
