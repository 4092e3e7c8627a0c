"""What people do to records by hand."""

from dataclasses import replace

from checkpointstores.memory import MemoryAccount
from eventproc.models import CheckpointUpdate, ConsumerGroup
from tests.simulation.actor import Actor
from tests.simulation.invariants import Invariants
from tests.simulation.line import Ledger


class Operator:
    """Whoever has the records in a browser before him."""

    def __init__(
        self, account: MemoryAccount, group: ConsumerGroup, invariants: Invariants
    ) -> None:
        self._account = account
        self._group = group
        self._invariants = invariants
        self._ledger = Ledger(account, Actor("operator"), invariants)

    async def rewrite_checkpoint(self, partition_id: str) -> None:
        """Write a checkpoint again as it stands, as another program may."""
        found = await self._ledger.read_checkpoint(self._group, partition_id)
        if found is None or found.offset is None or found.sequence_number is None:
            return
        await self._ledger.update_checkpoint(
            self._group,
            CheckpointUpdate(
                partition_id=partition_id,
                offset=found.offset,
                sequence_number=found.sequence_number,
                replaces=found,
                writer=self._ledger.actor.name,
            ),
        )

    def delete_checkpoint(self, partition_id: str) -> None:
        """Take a checkpoint away: the partition may be read again from its beginning."""
        self._account.records(self._group).checkpoint_by_partition.pop(partition_id, None)
        self._invariants.reset(partition_id)

    def delete_ownership(self, partition_id: str) -> None:
        """Take the record of an owner away."""
        self._account.records(self._group).ownership_by_partition.pop(partition_id, None)
        self._invariants.edited(partition_id)

    def edit_ownership(self, partition_id: str, owner_id: str | None) -> None:
        """Write any owner into a record that stands there."""
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

    def delete_member(self, owner_id: str) -> None:
        """Take a presence record away: until it is back, its owner seems to be a stranger."""
        self._account.records(self._group).member_by_owner.pop(owner_id, None)
        self._invariants.is_presence_whole = False
