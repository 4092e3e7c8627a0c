"""Finds where a pump begins: after the checkpoint that it adopts, or at the initial position."""

from eventproc._core.delivery.checkpoints import (
    BEFORE_FIRST_OFFSET,
    BEFORE_FIRST_SEQUENCE_NUMBER,
    starting_position,
)
from eventproc._core.delivery.offset_format import offset_format_in
from eventproc._delivery.adoption import Adoption
from eventproc._delivery.checkpointer import Checkpointer
from eventproc._delivery.reader import PartitionReader
from eventproc._delivery.scope import PartitionScope
from eventproc._delivery.steady_link import SteadyLink
from eventproc._group.pumps.stop_scope import PartitionStoppedError
from eventproc.models import Checkpoint, CloseReason, EventPosition, OffsetFormat


async def find_start(
    adoption: Adoption,
    *,
    checkpointer: Checkpointer,
    reader: PartitionReader,
    scope: PartitionScope,
    initial_position: EventPosition,
) -> EventPosition:
    """Adopt the checkpoint, restore the progress from it, and return where to begin receiving.

    Args:
        adoption: Fences the former owner.
        checkpointer: Its progress is restored from the checkpoint that was adopted.
        reader: Gets the position, so that it notices missing events.
        scope: Ends the waits, and logs a state that does not belong to its position.
        initial_position: Where to begin without a checkpoint.

    Raises:
        PartitionStoppedError: the checkpoint has the offset format of another protocol.
    """
    link = reader.link
    checkpoint = await adoption.run()
    numbered_through: int | None = None
    if checkpoint is not None:
        _check_offset_format(checkpoint, link.links.source.offset_format, scope)
        numbered_through = link.links.restore(checkpoint, checkpointer.progress)
        if checkpoint.state and checkpoint.state_sequence_number != checkpoint.sequence_number:
            scope.log.warning(
                "state_position_mismatched",
                sequence_number=checkpoint.sequence_number,
                state_sequence_number=checkpoint.state_sequence_number,
            )
    position = starting_position(checkpoint, initial_position)
    if position.is_latest:
        position = await _pin_latest(checkpointer, link, scope)
    stored = checkpointer.stored
    reader.begin(
        checkpointer.progress.sequence_number if numbered_through is None else numbered_through,
        None if stored is None else stored.last_modified,
    )
    return position


def _check_offset_format(checkpoint: Checkpoint, mine: OffsetFormat, scope: PartitionScope) -> None:
    """Refuse an offset of another protocol: the source would read a different event there."""
    other = offset_format_in(checkpoint)
    if other not in {None, mine}:
        scope.log.error(
            "offset_format_mismatched", offset=checkpoint.offset, offset_format=mine.value
        )
        raise PartitionStoppedError(CloseReason.SOURCE_FAILED)


async def _pin_latest(
    checkpointer: Checkpointer, link: SteadyLink, scope: PartitionScope
) -> EventPosition:
    """Replace "latest" by the position that it means now, and store that as a checkpoint.

    Otherwise, if this processor died before its first checkpoint, the next owner would begin at a
    later "latest" and skip the events in between.
    """
    end = await link.properties_with_retries()
    number, offset = end.last_enqueued_sequence_number, end.last_enqueued_offset
    if number < 0:  # The partition never had an event, and its first one must not be skipped.
        number, offset = BEFORE_FIRST_SEQUENCE_NUMBER, BEFORE_FIRST_OFFSET
    checkpointer.progress.pin(number, offset)
    with scope.stop.waiting():
        await checkpointer.flush()
    return EventPosition.from_offset(offset, sequence_number=number)
