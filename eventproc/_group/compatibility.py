"""Whether this processor may join the group: checked before and after it writes its member record.

Before: if a processor is refused, and its supervisor starts it again and again, the others never
count it as a member. (The write needs these listings anyway.) After: two incompatible processors
may start at once, and then at least one of them sees the other.

Two processors with different offset formats would read one checkpoint as different positions, and
skip or repeat the events in between. That would cause no error, so ``start`` refuses it.
``_delivery/start.py`` checks the format of each checkpoint again before it begins, because an Azure
SDK processor joins without any check.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eventproc._core.delivery.offset_format import owners_of_another, partitions_of_another
from eventproc._core.ownership.liveness import foreign_owners, fresh_owners, live_members
from eventproc._core.placement.names import agreed, most_named
from eventproc._core.placement.placement import MemberFacts, Placement
from eventproc.errors import ConfigurationError
from eventproc.models import (
    Checkpoint,
    ConsumerGroup,
    Member,
    MembershipSnapshot,
    OffsetFormat,
    OwnershipSnapshot,
)
from eventproc.ports import CheckpointStore

NAMES: Final = {
    OffsetFormat.AMQP: "AMQP (EventHubSource and the processors of Azure's SDKs)",
    OffsetFormat.KAFKA: "Kafka (KafkaEventSource)",
    OffsetFormat.QUEUE: "queues (RabbitQueues)",
}

_NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Compatibility:
    """Raises an error if a processor cannot be a member of a group."""

    group: ConsumerGroup
    member: Member
    """The processor's own record; it need not be stored yet."""

    placement: Placement
    expiration: timedelta

    async def check(self, store: CheckpointStore) -> None:
        """Read the group and check it.

        Raises:
            ConfigurationError: the group has another offset format, or follows a placement that
                this processor cannot follow; the message names the remedy.
            StoreUnavailableError: the group could not be read.
        """
        present = await store.list_members(self.group)
        owned = await store.list_ownership(self.group)
        self.check_records(owned, present, await store.list_checkpoints(self.group))

    def check_records(
        self,
        owned: OwnershipSnapshot,
        present: MembershipSnapshot,
        checkpoints: Sequence[Checkpoint] = (),
    ) -> None:
        """Check a group with these records.

        Raises:
            ConfigurationError: as ``check``.
        """
        me, expiration = self.member, self.expiration
        _check_placement(me, self.placement, owned, present, expiration=expiration)
        _check_offset_format(self.group, me, owned, present, checkpoints, expiration=expiration)


def _check_placement(
    me: Member,
    own: Placement,
    owned: OwnershipSnapshot,
    present: MembershipSnapshot,
    *,
    expiration: timedelta,
) -> None:
    owners = fresh_owners(owned, expiration).values()
    live = live_members(present, owners, expiration)
    names = [own.name, *(m.placement for m in live if m.owner_id != me.owner_id)]
    placement = agreed(names, own)
    if placement is None:
        raise ConfigurationError(
            f"most live processors of the group have the placement {most_named(names)!r}, which "
            "this processor does not have. Give it the same, or stop the others first",
            setting="placement",
            value=repr(own.name),
        )
    placement.check(MemberFacts.of(me))
    foreign = foreign_owners(owned, present, me.owner_id, expiration)
    if foreign and not own.admits_foreign:
        raise ConfigurationError(
            f"{len(foreign)} live owners are processors of an Azure SDK, which share evenly "
            f"({_first_names(foreign)}): use the placement Even until they have stopped",
            setting="placement",
            value=repr(own.name),
        )


def _check_offset_format(
    group: ConsumerGroup,
    me: Member,
    owned: OwnershipSnapshot,
    present: MembershipSnapshot,
    checkpoints: Sequence[Checkpoint],
    *,
    expiration: timedelta,
) -> None:
    owners = owners_of_another(me.offset_format, owned, present, me.owner_id, expiration=expiration)
    partitions = partitions_of_another(me.offset_format, checkpoints)
    if owners:
        what, other = f"live processors ({_first_names(owners)})", next(iter(owners.values()))
    elif partitions:
        what = f"checkpoints (of partition {_first_names(partitions)})"
        other = next(iter(partitions.values()))
    else:
        return
    raise ConfigurationError(
        f"the group of {group.eventhub_name!r} has {what} with offsets of {NAMES[other]}, but this "
        f"processor's source has offsets of {NAMES[me.offset_format]}: they may not name the same "
        "events, so a group keeps to one of the two. Use another consumer group, which begins at "
        "the initial position, or the same kind of source as before",
        setting="consumer_group",
        value=repr(group.name),
    )


def _first_names(names: Collection[str]) -> str:
    some = sorted(names)[:_NAMED_MAX]
    return ", ".join(some) + (", ..." if len(names) > len(some) else "")
