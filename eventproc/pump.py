"""One partition: adopt its checkpoint, receive, hand to the handler, note progress, close.

Rule 1: nothing is given to the handler unless the lease is trusted at that moment. A call that
outlives the trust is cancelled; when the lease is renewed, its events come again.
Rule 2: a receiver that breaks is opened again in place, and a handler that fails is called again
in place. Neither gives the partition up.
Rule 3: progress is noted after the handler returned, never before.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Final

from eventproc.checkpointer import Checkpointer, Verify
from eventproc.config import Backoff, EventProcessorConfig
from eventproc.context import LiveContext, PartitionIdentity
from eventproc.core.policy import backoff_s
from eventproc.core.progress import (
    BEFORE_FIRST_OFFSET,
    BEFORE_FIRST_SEQUENCE_NUMBER,
    starting_position,
)
from eventproc.ending import EndedError, Ending, Trust
from eventproc.errors import (
    OwnershipLostError,
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    StoreError,
)
from eventproc.handler import PartitionHandler
from eventproc.logs import Logger
from eventproc.models import (
    CloseReason,
    EventPosition,
    LastEnqueued,
    ReceivedEvent,
)
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.statistics import PumpStatistics

RECEIVE_WAIT_MAX: Final = timedelta(seconds=60)
"""How long one call to an idle receiver waits. The end of it changes nothing."""

CALL_BUDGET_FRACTION: Final = 0.6
"""Of the shutdown time-out: for a call under way. Then the handler's ``close`` has half of what is
left, and the last checkpoint the rest."""


class PartitionPump:
    """Serves one partition from claim to close."""

    def __init__(
        self,
        identity: PartitionIdentity,
        *,
        handler: PartitionHandler,
        source: EventSource,
        checkpointer: Checkpointer,
        trust: Trust,
        verify: Verify,
        config: EventProcessorConfig,
        rng: Random,
        log: Logger,
    ) -> None:
        self._identity = identity
        self._handler = handler
        self._source = source
        self._checkpointer = checkpointer
        self._verify = verify
        self._config = config
        self._rng = rng
        self._log = log
        self._budget = config.shutdown_timeout
        self._ending = Ending(trust)
        self._receiver: PartitionReceiver | None = None
        self._last_enqueued: LastEnqueued | None = None
        self._context = LiveContext(
            identity,
            checkpointer=checkpointer,
            ending=self._ending,
            last_enqueued=lambda: self._last_enqueued,
        )
        self._is_initialized = False
        self._handled_count = 0
        self._handler_error_count = 0
        self._receiver_error_count = 0

    def end(self, reason: CloseReason, *, within: timedelta | None = None) -> None:
        """Take no new events; let the call under way finish; checkpoint and close.

        All of it within the shutdown time-out, or what is left of that.
        """
        self._budget = within or self._budget
        self._ending.end(reason, call_budget=self._budget * CALL_BUDGET_FRACTION)

    def lose(self) -> None:
        """The partition belongs to somebody else: cancel the call under way, store nothing."""
        self._checkpointer.lose()
        self._ending.lose()

    @property
    def is_lost(self) -> bool:
        """Whether it was told that the partition belongs to somebody else."""
        return self._ending.is_lost

    def statistics(self) -> PumpStatistics:
        """How this partition does, now."""
        return PumpStatistics(
            partition_id=self._identity.partition_id,
            sequence_number=self._context.sequence_number,
            checkpointed_sequence_number=self._context.checkpointed_sequence_number,
            lag=self._context.lag,
            handled_count=self._handled_count,
            handler_error_count=self._handler_error_count,
            receiver_error_count=self._receiver_error_count,
        )

    async def run(self) -> CloseReason:
        """Serve the partition until told to end; return why it ended."""
        writing = asyncio.create_task(self._write_progress())
        try:
            await self._serve()
        except EndedError:
            pass
        except OwnershipLostError:
            self.lose()
        finally:
            reason = self._ending.reason or CloseReason.HANDLER_FAILED
            try:
                await self._close(reason)
            finally:
                writing.cancel()
                await asyncio.wait([writing])
        return reason

    async def _write_progress(self) -> None:
        """Store progress; where none may be stored any more, there is nothing left to do here."""
        await self._checkpointer.run()
        self.lose()

    async def _serve(self) -> None:
        first = await self._begin()
        self._is_initialized = True
        await self._call_until_done(lambda: self._handler.initialize(self._context))
        self._log.info("partition_started", sequence_number=self._context.sequence_number)
        attempt = 0
        while True:
            try:
                receiver = await self._open(first)
                while True:
                    events = await self._receive(receiver)
                    attempt = self._note_recovery(attempt)
                    await self._deliver(events)
            except SourceError as error:
                attempt += 1
                self._report(error, attempt)
                await self._close_receiver()
                await self._settle_displacement(error)
                await self._back_off(self._config.receiver_backoff, attempt)

    async def _begin(self) -> EventPosition:
        """Adopt the checkpoint; return where to start if it names no position."""
        async with self._ending.waiting():
            checkpoint = await self._checkpointer.adopt()
        if checkpoint is not None:
            self._context.restore(checkpoint)
            if checkpoint.state and checkpoint.state_sequence_number != checkpoint.sequence_number:
                self._log.warning(
                    "state_out_of_step",
                    sequence_number=checkpoint.sequence_number,
                    state_sequence_number=checkpoint.state_sequence_number,
                )
        otherwise = self._config.position_without_checkpoint(self._identity.partition_id)
        position = starting_position(checkpoint, otherwise)
        return await self._pin_latest() if position.is_latest else position

    async def _pin_latest(self) -> EventPosition:
        """Turn "latest" into a position that the next owner finds, should this one die early.

        Without that, what arrives between the first start and the first checkpoint would be
        skipped by a successor, for which "latest" is later.
        """
        attempt = 0
        while True:
            try:
                async with self._ending.waiting():
                    return await self._pin_to_end()
            except SourceError as error:
                attempt += 1
                self._report(error, attempt)
                await self._back_off(self._config.receiver_backoff, attempt)

    async def _pin_to_end(self) -> EventPosition:
        end = await self._source.partition_properties(self._identity.partition_id)
        number, offset = end.last_enqueued_sequence_number, end.last_enqueued_offset
        if number < 0:  # It never had an event; what will come first must not be skipped either.
            number, offset = BEFORE_FIRST_SEQUENCE_NUMBER, BEFORE_FIRST_OFFSET
        self._context.pin(number, offset)
        await self._context.checkpoint()
        return EventPosition.from_offset(offset)

    async def _open(self, first: EventPosition) -> PartitionReceiver:
        offset = self._context.offset
        position = first if offset is None else EventPosition.from_offset(offset)
        async with self._ending.waiting():
            self._receiver = await self._source.open_receiver(
                self._identity.group.name, self._identity.partition_id, position
            )
        return self._receiver

    async def _receive(self, receiver: PartitionReceiver) -> Sequence[ReceivedEvent]:
        async with self._ending.waiting():
            events = await receiver.receive(
                events_max=self._config.batch_size_max, wait_max=RECEIVE_WAIT_MAX
            )
        self._last_enqueued = receiver.last_enqueued
        return events

    async def _deliver(self, events: Sequence[ReceivedEvent]) -> None:
        """Hand over events until the handler took all of them."""
        batch = self._unhandled(events)
        if batch:
            self._note_gap(batch[0])
        attempt = 0
        while batch:
            process = partial(self._handler.process_events, self._context, batch)
            attempt, is_done = await self._attempt(process, attempt)
            if is_done:
                self._context.advance(batch[-1])
                self._handled_count += len(batch)
                self._checkpointer.note(self._context.progress(), len(batch))
            batch = self._unhandled(batch)

    def _unhandled(self, events: Sequence[ReceivedEvent]) -> Sequence[ReceivedEvent]:
        """Leave out what was handled: a receiver may begin early, a handler may checkpoint."""
        if not events or self._context.is_unhandled(events[0]):
            return events
        return [event for event in events if self._context.is_unhandled(event)]

    async def _call_until_done(self, call: Callable[[], Awaitable[None]]) -> None:
        attempt, is_done = 0, False
        while not is_done:
            attempt, is_done = await self._attempt(call, attempt)

    async def _attempt(self, call: Callable[[], Awaitable[None]], attempt: int) -> tuple[int, bool]:
        """Call the handler once; return the count of failures and whether it succeeded."""
        try:
            is_done = await self._call_once(call)
        except (EndedError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - the one place around the user's code
            self._ending.check()
            await self._handler_failed(error, attempt + 1)
            return attempt + 1, False
        if is_done and attempt:
            self._log.info("handler_recovered", attempt_count=attempt + 1)
        return attempt, is_done

    async def _call_once(self, call: Callable[[], Awaitable[None]]) -> bool:
        """Call under a trusted lease; return whether the call ran to its end."""
        if await self._ending.until_trusted():
            self._log.info("lease_regained")
        cut, is_done = None, False
        self._context.begin_call()
        try:
            async with self._ending.calling() as cut:
                await call()
            is_done = True
        except TimeoutError:
            if cut is None or not cut.expired():
                raise
            self._ending.check()
            self._log.warning("lease_lapsed", sequence_number=self._context.sequence_number)
        finally:
            self._context.end_call(is_done=is_done)
        return is_done

    async def _handler_failed(self, error: Exception, attempt: int) -> None:
        self._handler_error_count += 1
        log = self._log.warning if attempt == 1 else self._log.debug
        log("handler_failed", attempt=attempt, error=repr(error), exc_info=error)
        try:
            await self._call_once(lambda: self._handler.process_error(self._context, error))
        except (EndedError, asyncio.CancelledError):
            raise
        except Exception as second:  # noqa: BLE001 - the user's code again
            self._log.warning("error_handler_failed", error=repr(second), exc_info=second)
        await self._back_off(self._config.handler_backoff, attempt)

    async def _back_off(self, backoff: Backoff, attempt: int) -> None:
        wait_s = backoff_s(
            attempt, first=backoff.first, most=backoff.most, chance=self._rng.random()
        )
        async with self._ending.waiting():
            await asyncio.sleep(wait_s)

    def _report(self, error: SourceError, attempt: int) -> None:
        self._receiver_error_count += 1
        if isinstance(error, SourceRejectedError):
            log = self._log.error if attempt == 1 else self._log.debug
        else:
            log = self._log.warning if attempt == 1 else self._log.debug
        log("receiver_failed", attempt=attempt, error=str(error))

    def _note_recovery(self, attempt: int) -> int:
        if attempt:
            self._log.info("receiver_recovered", attempt_count=attempt)
        return 0

    def _note_gap(self, event: ReceivedEvent) -> None:
        handled = self._context.sequence_number
        if handled is not None and event.sequence_number > handled + 1:
            self._log.warning(
                "events_missing",
                after_sequence_number=handled,
                missing_count=event.sequence_number - handled - 1,
            )

    async def _settle_displacement(self, error: SourceError) -> None:
        """Another receiver took the link: only the record tells whether we still own it."""
        if not isinstance(error, ReceiverDisplacedError):
            return
        try:
            async with self._ending.waiting():
                is_owned = await self._verify()
        except StoreError:
            return
        if not is_owned:
            raise OwnershipLostError(self._identity.partition_id)

    async def _close_receiver(self) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            await receiver.close()

    async def _close(self, reason: CloseReason) -> None:
        """Close the handler, then store what it handled; each within its part of the budget."""
        await self._close_receiver()
        part_s = self._budget.total_seconds() * (1 - CALL_BUDGET_FRACTION) / 2
        if self._is_initialized:
            try:
                async with asyncio.timeout(part_s):
                    await self._handler.close(self._context, reason)
            except TimeoutError:
                self._log.warning("handler_abandoned", after_s=part_s)
            except Exception as error:  # noqa: BLE001 - the user's code
                self._log.warning("handler_failed", attempt=1, error=repr(error), exc_info=error)
        if reason is not CloseReason.OWNERSHIP_LOST:
            try:
                async with asyncio.timeout(part_s):
                    await self._context.checkpoint()
            except TimeoutError:
                self._log.warning(
                    "checkpoint_abandoned", sequence_number=self._context.sequence_number
                )
            except OwnershipLostError:
                pass
        self._log.info(
            "partition_stopped",
            reason=reason.value,
            sequence_number=self._context.sequence_number,
            checkpointed_sequence_number=self._context.checkpointed_sequence_number,
        )
