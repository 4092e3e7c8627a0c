"""Who may enter a group: looked at once, after this processor made itself known.

A processor whose leases live in another way takes what is owned; one that numbers events in another
way begins somewhere else, and skips or repeats what lies between. Nobody would notice either. So
both are refused at the door; a checkpoint is looked at again where it is taken up (``beginning``),
for a processor of another SDK looks at nothing.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from eventproc.core.numbering import owners_of_another, partitions_of_another
from eventproc.errors import ConfigurationError
from eventproc.membership import Member, MembershipSnapshot
from eventproc.models import Checkpoint, ConsumerGroup, Numbering, OwnershipSnapshot
from eventproc.ports import CheckpointStore
from eventproc.sessions import check_lease_mode

NAMES: Final = {
    Numbering.AMQP: "AMQP (EventHubSource and the processors of Azure's SDKs)",
    Numbering.KAFKA: "Kafka (KafkaEventSource)",
}

_NAMED_MAX: Final = 3


async def check_admission(
    store: CheckpointStore, group: ConsumerGroup, member: Member, *, expiration: timedelta
) -> None:
    """Refuse to enter a group that this processor cannot share.

    Raises:
        ConfigurationError: it is one; the message names the remedy.
        StoreUnavailableError: the group could not be read.
    """
    present = await store.list_members(group)
    owned, checkpoints = await asyncio.gather(
        store.list_ownership(group), store.list_checkpoints(group)
    )
    check_lease_mode(member, owned, present, expiration=expiration)
    _check_numbering(group, member, owned, present, checkpoints, expiration=expiration)


def _check_numbering(
    group: ConsumerGroup,
    me: Member,
    owned: OwnershipSnapshot,
    present: MembershipSnapshot,
    checkpoints: Sequence[Checkpoint],
    *,
    expiration: timedelta,
) -> None:
    owners = owners_of_another(me.numbering, owned, present, me.owner_id, expiration=expiration)
    partitions = partitions_of_another(me.numbering, checkpoints)
    if owners:
        what, other = f"live processors ({_some(owners)})", next(iter(owners.values()))
    elif partitions:
        what = f"checkpoints (of partition {_some(partitions)})"
        other = next(iter(partitions.values()))
    else:
        return
    raise ConfigurationError(
        f"consumer group {group.name!r} of {group.eventhub_name!r} has {what} with offsets of "
        f"{NAMES[other]}, and this processor reads by those of {NAMES[me.numbering]}: that the two "
        "agree is not known, so a group keeps to one. Take another consumer_group (it begins at "
        "initial_position), or go on as before"
    )


def _some(names: Mapping[str, object]) -> str:
    some = sorted(names)[:_NAMED_MAX]
    return ", ".join(some) + (", ..." if len(names) > len(some) else "")
