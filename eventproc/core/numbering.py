"""May a source go on from these records? Whose sequence numbers and offsets they hold decides.

Rule 1: an offset tells by itself whose it is, so every store keeps the mark, and in the same
conditional write as the position: a checkpoint of yesterday is refused like a processor of today.
Rule 2: whatever carries no mark was written over AMQP: by a processor of another SDK, or by an
earlier version of this one.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from eventproc.core.lease import is_fresh
from eventproc.core.progress import BEFORE_FIRST_OFFSET
from eventproc.membership import MembershipSnapshot, MemberStatus
from eventproc.models import Checkpoint, Numbering, OwnershipSnapshot

KAFKA_OFFSET_PREFIX: Final = "kafka:"
"""Begins the offset of everything that was read over Kafka."""


def numbering_of(offset: str | None) -> Numbering | None:
    """Return whose an offset is; ``None`` for none, and for the place before every event."""
    if offset is None or offset == BEFORE_FIRST_OFFSET:
        return None
    return Numbering.KAFKA if offset.startswith(KAFKA_OFFSET_PREFIX) else Numbering.AMQP


def numbering_in(checkpoint: Checkpoint) -> Numbering | None:
    """Return whose position a checkpoint names; ``None`` where it names none but the beginning.

    A processor of another SDK may leave the offset out.
    """
    if checkpoint.offset is None and checkpoint.sequence_number is not None:
        return Numbering.AMQP
    return numbering_of(checkpoint.offset)


def partitions_of_another(
    numbering: Numbering, checkpoints: Iterable[Checkpoint]
) -> dict[str, Numbering]:
    """Return the partitions whose checkpoints are not of this numbering, with whose they are."""
    found = {found.partition_id: numbering_in(found) for found in checkpoints}
    return {p: other for p, other in found.items() if other not in {None, numbering}}


def owners_of_another(
    numbering: Numbering,
    owned: OwnershipSnapshot,
    present: MembershipSnapshot,
    me: str,
    *,
    expiration: timedelta,
) -> dict[str, Numbering]:
    """Return the live processors that read in another numbering, with theirs."""
    numberings: Mapping[str, Numbering] = {
        member.owner_id: member.numbering for member in present.members
    }
    live = {
        member.owner_id
        for member in present.members
        if member.status is not MemberStatus.DEAD
        and (
            present.as_of is None
            or member.last_modified is None
            or is_fresh(member.last_modified, present.as_of, present.resolution, expiration)
        )
    } | {
        ownership.owner_id
        for ownership in owned.ownerships
        if ownership.owner_id is not None
        and (
            owned.as_of is None
            or is_fresh(ownership.last_modified, owned.as_of, owned.resolution, expiration)
        )
    }
    others = {owner_id: numberings.get(owner_id, Numbering.AMQP) for owner_id in live - {me}}
    return {owner_id: other for owner_id, other in others.items() if other is not numbering}
