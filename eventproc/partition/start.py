"""Finds where a pump begins: after the checkpoint that it adopts, or at the initial position.

Rule: a partition is not served before its checkpoint is adopted. While the store does not answer,
adoption is retried; a refused or damaged checkpoint is also reported to the handler.
"""

import asyncio
from collections.abc import Awaitable, Callable

from eventproc.core.checkpoint_rules import (
    BEFORE_FIRST_OFFSET,
    BEFORE_FIRST_SEQUENCE_NUMBER,
    starting_position,
)
from eventproc.core.offset_format import offset_format_in
from eventproc.errors import StoreError
from eventproc.logs import Logger
from eventproc.models import Checkpoint, CloseReason, EventPosition, OffsetFormat
from eventproc.partition.checkpointer import Checkpointer
from eventproc.partition.context import LiveContext
from eventproc.partition.reader import PartitionReader
from eventproc.partition.stop_scope import PartitionStoppedError, StopScope

ReportError = Callable[[StoreError, int], Awaitable[None]]
"""Passes an error that an operator has to resolve to the handler, with the number of the attempt.
"""


async def begin(
    context: LiveContext,
    *,
    checkpointer: Checkpointer,
    reader: PartitionReader,
    stop_scope: StopScope,
    initial_position: EventPosition,
    wait_s: Callable[[int], float],
    report: ReportError,
    log: Logger,
) -> EventPosition:
    """Adopt the checkpoint, restore the context from it, and return where to begin receiving.

    Args:
        context: Takes over the checkpoint's position, state and delivery count.
        checkpointer: Adopts the checkpoint.
        reader: Receives the position, so that it notices gaps.
        stop_scope: Cuts the waits.
        initial_position: Where to begin without a checkpoint.
        wait_s: Seconds to wait after the n-th failed attempt to adopt.
        report: Passes a refused or damaged checkpoint to the handler.
        log: Logs that, and a state that does not belong to the checkpoint's position.

    Raises:
        PartitionStoppedError: the checkpoint has the offset format of another protocol.
    """
    checkpoint = await _adopt(
        checkpointer,
        stop_scope,
        is_from_first=initial_position.is_earliest,
        wait_s=wait_s,
        report=report,
        logger=log,
    )
    if checkpoint is not None:
        _check_offset_format(checkpoint, reader.offset_format, log)
        context.restore(checkpoint)
        if checkpoint.state and checkpoint.state_sequence_number != checkpoint.sequence_number:
            log.warning(
                "state_position_mismatched",
                sequence_number=checkpoint.sequence_number,
                state_sequence_number=checkpoint.state_sequence_number,
            )
    position = starting_position(checkpoint, initial_position)
    if position.is_latest:
        position = await _pin_latest(context, reader, stop_scope)
    reader.note_position(context.reached)
    return position


async def _adopt(
    checkpointer: Checkpointer,
    stop_scope: StopScope,
    *,
    is_from_first: bool,
    wait_s: Callable[[int], float],
    report: ReportError,
    logger: Logger,
) -> Checkpoint | None:
    """Adopt the checkpoint; retry until that succeeds or the pump ends."""
    attempt = refusal_count = 0
    while True:
        try:
            async with stop_scope.waiting():
                checkpoint = await checkpointer.adopt(is_from_first=is_from_first)
        except StoreError as error:
            attempt += 1
            is_refused = error is checkpointer.refusal
            refusal_count += is_refused
            log = logger.debug
            if is_refused and refusal_count == 1:
                log = logger.error
            elif attempt == 1:
                log = logger.warning
            log("adoption_failed", attempt=attempt, error=str(error))
            if is_refused:
                await report(error, refusal_count)
            async with stop_scope.waiting():
                await asyncio.sleep(wait_s(attempt))
        else:
            if attempt:
                logger.info("adoption_recovered", attempt_count=attempt + 1)
            return checkpoint


def _check_offset_format(checkpoint: Checkpoint, mine: OffsetFormat, log: Logger) -> None:
    """Refuse an offset of another protocol: the source would read a different event there."""
    other = offset_format_in(checkpoint)
    if other not in {None, mine}:
        log.error("offset_format_mismatched", offset=checkpoint.offset, offset_format=mine.value)
        raise PartitionStoppedError(CloseReason.SOURCE_FAILED)


async def _pin_latest(
    context: LiveContext, reader: PartitionReader, stop_scope: StopScope
) -> EventPosition:
    """Replace "latest" by the position that it means now, and store that as a checkpoint.

    Otherwise, if this processor died before its first checkpoint, the next owner would begin at a
    later "latest" and skip the events in between.
    """
    end = await reader.properties_with_retries()
    number, offset = end.last_enqueued_sequence_number, end.last_enqueued_offset
    if number < 0:  # The partition never had an event, and its first one must not be skipped.
        number, offset = BEFORE_FIRST_SEQUENCE_NUMBER, BEFORE_FIRST_OFFSET
    context.pin(number, offset)
    async with stop_scope.waiting():
        await context.checkpoint()
    return EventPosition.from_offset(offset, sequence_number=number)
