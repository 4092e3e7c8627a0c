"""The handler of a processor that calls the callbacks of Azure's client."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from azure.eventhub import CloseReason as AzureCloseReason

from eventproc._base.logs import get_logger
from eventproc._base.tasks import to_the_end, users_code
from eventproc._delivery.handler import BatchError, PartitionContext, PartitionHandler
from eventproc.compat._caller import Caller, Delivery
from eventproc.compat._errors import azures_error
from eventproc.compat._event_data import LazyEventData
from eventproc.compat._partition import Partition
from eventproc.errors import OwnershipLostError
from eventproc.models import CloseReason, ReceivedEvent

Callback: TypeAlias = Callable[..., Any]

FIRST_PAUSE_S: Final = 1.0
PAUSE_MAX_S: Final = 30.0
"""After a callback failed, its partition waits for so long; twice as long after each further
failure at the same events."""


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """The program's functions, and how they are called."""

    on_events: Callback
    takes_batches: bool
    on_error: Callback | None
    on_partition_initialize: Callback | None
    on_partition_close: Callback | None
    caller: Caller
    """Where they run."""

    async def tell(self, context: object, error: Exception) -> None:
        """Call ``on_error``; its own error is only logged."""
        log = get_logger("eventproc.compat")
        if self.on_error is None:
            log.warning("error_unhandled", error=repr(error))
            return
        try:
            await self.caller.call(self.on_error, context, azures_error(error))
        except Exception as second:
            log.warning("error_handler_failed", error=repr(second), exc_info=second)

    async def call(self, function: Callback | None, context: object, *args: object) -> None:
        """Call a function whose error goes to ``on_error`` and ends nothing."""
        if function is None:
            return
        try:
            await self.caller.call(function, context, *args)
        except Exception as error:  # noqa: BLE001 - the user's code
            await self.tell(context, error)


class CallbackHandler(PartitionHandler):
    """Serves one partition with the callbacks, while this process owns it."""

    def __init__(
        self,
        callbacks: Callbacks,
        context_of: Callable[[str], tuple[Partition, object]],
        *,
        clock: Callable[[], float],
    ) -> None:
        """Call nothing yet; *context_of* returns a partition and the program's context of it."""
        self._callbacks = callbacks
        self._context_of = context_of
        self._clock = clock

    async def initialize(self, context: PartitionContext) -> None:
        partition, theirs = self._of(context)
        partition.begin(context)
        await self._callbacks.call(self._callbacks.on_partition_initialize, theirs)

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        partition, theirs = self._of(context)
        callbacks = self._callbacks
        if callbacks.caller.is_over:
            return
        try:
            with users_code():
                if not callbacks.takes_batches:
                    await callbacks.caller.each(
                        Delivery(callbacks.on_events, theirs, partition, events, context)
                    )
                else:
                    batch = [LazyEventData(event) for event in events]
                    partition.newest, partition.delivered = batch[-1], events[-1].sequence_number
                    await callbacks.caller.call(callbacks.on_events, theirs, batch)
        except OwnershipLostError:
            raise
        except Exception as error:
            self._note_failure(partition)
            raise BatchError([(events[0], error)], untried=events[1:]) from error
        if partition.failure_count and partition.delivered > partition.failed_at:
            partition.failure_count, partition.failed_at = 0, -1

    def _note_failure(self, partition: Partition) -> None:
        pause_s = min(FIRST_PAUSE_S * 2.0**partition.failure_count, PAUSE_MAX_S)
        partition.failure_count += 1
        partition.failed_at = max(partition.failed_at, partition.delivered)
        partition.resume_at_s = self._clock() + pause_s

    async def on_idle(self, context: PartitionContext) -> None:
        if self._callbacks.caller.is_over:
            return
        nothing: list[object] | None = [] if self._callbacks.takes_batches else None
        _, theirs = self._of(context)
        await self._callbacks.call(self._callbacks.on_events, theirs, nothing)

    async def process_error(self, context: PartitionContext, error: Exception) -> None:
        await self._callbacks.tell(self._of(context)[1], error)

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        is_stop = reason is CloseReason.SHUTDOWN
        azures = AzureCloseReason.SHUTDOWN if is_stop else AzureCloseReason.OWNERSHIP_LOST
        _, theirs = self._of(context)
        closing = self._callbacks.call(self._callbacks.on_partition_close, theirs, azures)
        await to_the_end(asyncio.ensure_future(closing))

    def _of(self, context: PartitionContext) -> tuple[Partition, object]:
        return self._context_of(context.partition_id)
