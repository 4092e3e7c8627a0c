"""An operator who changes records by hand."""

from dataclasses import replace

from checkpointstores.memory import MemoryAccount
from eventproc.models import CheckpointUpdate, ConsumerGroup, ReceivedEvent
from tests.simulation.actor import Actor
from tests.simulation.checked_store import CheckedStore
from tests.simulation.invariants import Invariants


class Operator:
    """An operator who edits the records in the store directly."""

    def __init__(
        self, account: MemoryAccount, group: ConsumerGroup, invariants: Invariants
    ) -> None:
        self._account = account
        self._group = group
        self._invariants = invariants
        self.store = CheckedStore(account, Actor("operator"), invariants)

    async def rewrite_checkpoint(
        self, partition_id: str, event: ReceivedEvent | None = None
    ) -> None:
        """Rewrite a checkpoint, as another program may: unchanged, or moved on to an *event*."""
        found = await self.store.read_checkpoint(self._group, partition_id)
        if found is None or found.offset is None or found.sequence_number is None:
            return
        if event is not None and event.sequence_number <= found.sequence_number:
            return
        await self.store.update_checkpoint(
            self._group,
            CheckpointUpdate(
                partition_id=partition_id,
                offset=found.offset if event is None else event.offset,
                sequence_number=(found.sequence_number if event is None else event.sequence_number),
                isolation=found.isolation,
                replaces=found,
                writer=self.store.actor.name,
            ),
        )

    def delete_checkpoint(self, partition_id: str) -> None:
        """Delete a checkpoint: the partition may be read again from its beginning."""
        self._account.records(self._group).checkpoint_by_partition.pop(partition_id, None)
        self._invariants.reset(partition_id)

    def delete_ownership(self, partition_id: str) -> None:
        """Delete an ownership record."""
        self._account.records(self._group).ownership_by_partition.pop(partition_id, None)
        self._invariants.edited(partition_id)

    def edit_ownership(self, partition_id: str, owner_id: str | None) -> None:
        """Change the owner in an existing record."""
        ownerships = self._account.records(self._group).ownership_by_partition
        found = ownerships.get(partition_id)
        if found is None or found.owner_id == owner_id:
            return
        ownerships[partition_id] = replace(
            found,
            owner_id=owner_id,
            etag=self._account.new_etag(),
            last_modified=self._account.now(),
        )
        self._invariants.edited(partition_id)

    def rewrite_ownerships(self) -> None:
        """Write every ownership record again, unchanged, as a move of its checkpoint does."""
        ownerships = self._account.records(self._group).ownership_by_partition
        for partition_id, found in ownerships.items():
            ownerships[partition_id] = replace(found, etag=self._account.new_etag())

    def delete_member(self, owner_id: str) -> None:
        """Delete a member record: until it is back, its owner looks like a foreign member."""
        self._account.records(self._group).member_by_owner.pop(owner_id, None)
        self._invariants.is_membership_visible = False
