"""The leases of one processor, with a slow and faulty store, and a membership as a test says."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random

from checkpointstores.memory import MemoryCheckpointStore
from eventproc._base.logs import get_logger
from eventproc._core.ownership.lease import contradicted
from eventproc._group.answers import Answers
from eventproc._group.leases import Leases
from eventproc._group.membership import Membership
from eventproc.models import Member, OwnershipClaim, OwnershipSnapshot, WriteOutcome
from eventproc.ports import CheckpointStore
from eventproc.testing import FaultyCheckpointStore, StoreFaults
from tests.scenarios.group_setup import Setup

EXPIRATION = timedelta(seconds=60)


class SlowStore(MemoryCheckpointStore):
    """Delays each write, and then its answer."""

    request_s = 0.0
    answer_s = 0.0

    async def claim_ownership(self, group, claims):
        """Finish a write even if its caller is cancelled."""
        return await asyncio.shield(asyncio.create_task(self._act(group, claims)))

    async def _act(self, group, claims):
        await asyncio.sleep(self.request_s)
        await self.open()  # The server has the request, even if the client was closed since.
        results = await super().claim_ownership(group, claims)
        await asyncio.sleep(self.answer_s)
        return results


class StubMembership(Membership):
    """The membership of "me", which answers as a test says."""

    def __init__(
        self,
        store: CheckpointStore,
        setup: Setup,
        *,
        is_sole: Callable[[], Awaitable[bool]] | None,
    ) -> None:
        super().__init__(
            store,
            setup.group,
            Member(owner_id="me", incarnation="1"),
            answers=Answers(asyncio.get_running_loop().time),
            expiration=EXPIRATION,
            clock=asyncio.get_running_loop().time,
            log=get_logger("eventproc.test"),
        )
        self._is_sole = is_sole

    async def is_sole_holder(self) -> bool:
        """Whether no other processor writes under this owner id; so it is by default."""
        return self._is_sole is None or await self._is_sole()


class LeasesFixture:
    """The leases of one processor, with a store that is slow and fails."""

    def __init__(self, *, is_sole_holder: Callable[[], Awaitable[bool]] | None = None) -> None:
        self.setup = Setup()
        self.slow_store = SlowStore(self.setup.account)
        self.store = FaultyCheckpointStore(self.slow_store, Random(0))
        self.lost: list[str] = []
        self.leases = Leases(
            self.store,
            self.setup.group,
            StubMembership(
                self.store,
                self.setup,
                is_sole=is_sole_holder,
            ),
            answers=Answers(asyncio.get_running_loop().time),
            expiration=EXPIRATION,
            clock=asyncio.get_running_loop().time,
            on_lost=self.lost.append,
            log=get_logger("eventproc.test"),
        )

    def trusted_until_s(self, partition_id: str) -> float:
        """Until when the lease of a partition may be trusted."""
        return asyncio.get_running_loop().time() + self.leases.remaining_s(partition_id)

    async def lose_renewals(self) -> None:
        """Renew all leases, and lose the answers."""
        self.store.faults = StoreFaults(answer_lost_rate=1.0)
        await self.leases.renew_all()
        self.store.faults = StoreFaults()

    async def compare(self, listed: OwnershipSnapshot, asked_at_s: float) -> None:
        """Compare the leases with a listing that was requested at *asked_at_s*."""
        leases = self.leases.by_partition.values()
        found = contradicted(leases, "me", listed, asked_at_s)
        await self.leases.compare(found, listed, asked_at_s)

    async def claim(self, *partition_ids: str, epoch: int = 1) -> None:
        """Claim partitions without an owner."""
        await self.store.open()
        await self.leases.claim(
            [
                OwnershipClaim(partition_id=p, owner_id="me", expected_etag=None, epoch=epoch)
                for p in partition_ids
            ]
        )

    async def steal(self, partition_id: str) -> None:
        """Let another processor steal a partition."""
        records = self.setup.account.records(self.setup.group).ownership_by_partition
        claim = OwnershipClaim(
            partition_id=partition_id, owner_id="thief", expected_etag=records[partition_id].etag
        )
        async with MemoryCheckpointStore(self.setup.account) as store:
            (result,) = await store.claim_ownership(self.setup.group, [claim])
        assert result.outcome is WriteOutcome.WON
