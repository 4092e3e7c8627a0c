"""May a source go on from these records? Only if their offsets have its own format.

Rule 1: an offset shows its own format (Kafka's begin with ``kafka:``, those of RabbitMQ's queues
with ``queue:``). So the format is stored in the same write as the position, by every store, and old
checkpoints are checked like live members.
Rule 2: a record that does not show its format has AMQP offsets: a processor of an Azure SDK wrote
it.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from eventproc._core.delivery.checkpoints import BEFORE_FIRST_OFFSET
from eventproc._core.ownership.liveness import fresh_owners, live_members
from eventproc.models import Checkpoint, MembershipSnapshot, OffsetFormat, OwnershipSnapshot
from eventproc.models._checkpoint import QUEUE_OFFSET_PREFIX

KAFKA_OFFSET_PREFIX: Final = "kafka:"
"""The prefix of each offset of an event that was read over Kafka."""

_FORMATS: Final[Mapping[str, OffsetFormat]] = {
    KAFKA_OFFSET_PREFIX: OffsetFormat.KAFKA,
    QUEUE_OFFSET_PREFIX: OffsetFormat.QUEUE,
}


def offset_format_of(offset: str | None) -> OffsetFormat | None:
    """Return an offset's format; ``None`` for no offset, and for the one before the first event."""
    if offset is None or offset == BEFORE_FIRST_OFFSET:
        return None
    return next((f for p, f in _FORMATS.items() if offset.startswith(p)), OffsetFormat.AMQP)


def offset_format_in(checkpoint: Checkpoint) -> OffsetFormat | None:
    """Return the format of a checkpoint's position; ``None`` for the one before the first event.

    An Azure SDK processor may leave the offset out.
    """
    if checkpoint.offset is None and checkpoint.sequence_number is not None:
        return OffsetFormat.AMQP
    return offset_format_of(checkpoint.offset)


def partitions_of_another(
    offset_format: OffsetFormat, checkpoints: Iterable[Checkpoint]
) -> dict[str, OffsetFormat]:
    """Return the partitions whose checkpoints have another offset format, with that format."""
    found = {found.partition_id: offset_format_in(found) for found in checkpoints}
    return {p: other for p, other in found.items() if other not in {None, offset_format}}


def owners_of_another(
    offset_format: OffsetFormat,
    owned: OwnershipSnapshot,
    present: MembershipSnapshot,
    me: str,
    *,
    expiration: timedelta,
) -> dict[str, OffsetFormat]:
    """Return the live processors with another offset format, with that format."""
    format_by_owner: Mapping[str, OffsetFormat] = {
        member.owner_id: member.offset_format for member in present.members
    }
    live = {member.owner_id for member in live_members(present, (), expiration)}
    live |= set(fresh_owners(owned, expiration).values())
    others = {
        owner_id: format_by_owner.get(owner_id, OffsetFormat.AMQP) for owner_id in live - {me}
    }
    return {owner_id: other for owner_id, other in others.items() if other is not offset_format}


def is_of_other_format(checkpoint: Checkpoint, offset: str | None) -> bool:
    """Whether the checkpoint and *offset* are of two protocols: their numbers do not compare."""
    if offset is None:
        return False
    mine, other = offset_format_of(offset), offset_format_in(checkpoint)
    return None not in {mine, other} and mine is not other
