"""Where a pump begins: after the checkpoint that it adopts, or where the user said."""

from eventproc.checkpointer import Checkpointer
from eventproc.context import LiveContext
from eventproc.core.numbering import numbering_in
from eventproc.core.progress import (
    BEFORE_FIRST_OFFSET,
    BEFORE_FIRST_SEQUENCE_NUMBER,
    starting_position,
)
from eventproc.ending import Ending, GivenUpError
from eventproc.logs import Logger
from eventproc.models import Checkpoint, CloseReason, EventPosition, Numbering
from eventproc.reception import Reception


async def begin(
    context: LiveContext,
    *,
    checkpointer: Checkpointer,
    reception: Reception,
    ending: Ending,
    otherwise: EventPosition,
    log: Logger,
) -> EventPosition:
    """Adopt the checkpoint, and let everybody know where it says to go on.

    Returns where to begin to receive.

    Args:
        context: Takes up position, state and whatever else the checkpoint says.
        checkpointer: Adopts it.
        reception: Is told what is handled, so that it notices gaps.
        ending: Cuts the waits.
        otherwise: Where to begin without a checkpoint.
        log: Where to tell of a state that does not fit its position.

    Raises:
        GivenUpError: the checkpoint was written over another protocol.
    """
    async with ending.waiting():
        checkpoint = await checkpointer.adopt(is_from_first=otherwise.is_earliest)
    if checkpoint is not None:
        _refuse_another(checkpoint, reception.numbering, log)
        context.restore(checkpoint)
        if checkpoint.state and checkpoint.state_sequence_number != checkpoint.sequence_number:
            log.warning(
                "state_out_of_step",
                sequence_number=checkpoint.sequence_number,
                state_sequence_number=checkpoint.state_sequence_number,
            )
    position = starting_position(checkpoint, otherwise)
    if position.is_latest:
        position = await _pin_latest(context, reception, ending)
    reception.note_position(context.reached)
    return position


def _refuse_another(checkpoint: Checkpoint, mine: Numbering, log: Logger) -> None:
    """Never go on from a position that the source would take for another one."""
    other = numbering_in(checkpoint)
    if other not in {None, mine}:
        log.error("checkpoint_of_another_numbering", offset=checkpoint.offset, numbering=mine.value)
        raise GivenUpError(CloseReason.SOURCE_FAILED)


async def _pin_latest(context: LiveContext, reception: Reception, ending: Ending) -> EventPosition:
    """Turn "latest" into a position that the next owner finds, should this one die early.

    Without that, what arrives between the first start and the first checkpoint would be skipped by
    a successor, for which "latest" is later.
    """
    end = await reception.ask_for_ever()
    number, offset = end.last_enqueued_sequence_number, end.last_enqueued_offset
    if number < 0:  # It never had an event; what will come first must not be skipped either.
        number, offset = BEFORE_FIRST_SEQUENCE_NUMBER, BEFORE_FIRST_OFFSET
    context.pin(number, offset)
    async with ending.waiting():
        await context.checkpoint()
    return EventPosition.from_offset(offset)
