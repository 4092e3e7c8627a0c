"""The balancer of one processor, and records that other processors wrote."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from checkpointstores.memory import MemoryCheckpointStore
from eventproc._base.logs import get_logger
from eventproc._core.placement.even import Even
from eventproc._core.placement.placement import Placement
from eventproc._delivery.config import EventProcessorConfig
from eventproc._group.balancer import Balancer
from eventproc.models import Member, MemberStatus, OwnershipClaim
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds

LOG = get_logger("eventproc.test")


class SlowListing(MemoryCheckpointStore):
    """A store that answers listings late."""

    delay_s = 0.0
    """Of ownership records."""

    members_delay_s = 0.0

    async def list_members(self, group):
        """Return the records as they were at the request."""
        found = await super().list_members(group)
        await asyncio.sleep(self.members_delay_s)
        return found

    async def list_ownership(self, group):
        """Return the records as they were at the request."""
        found = await super().list_ownership(group)
        await asyncio.sleep(self.delay_s)
        return found


class BalancerFixture:
    """The balancer of one processor, "me", and a store that tests write other records into."""

    def __init__(
        self,
        partition_count: int,
        placement: Placement | None = None,
    ) -> None:
        self.setup = Setup()
        self.store = SlowListing(self.setup.account)
        self.partition_ids = [str(number) for number in range(partition_count)]
        self.placement = placement or Even()
        self.config = EventProcessorConfig(uses_store_thread=False, placement=self.placement)
        clock = asyncio.get_running_loop().time
        self.balancer = Balancer(
            self.store,
            self.setup.group,
            Member(
                owner_id="me",
                incarnation="1",
                placement=self.placement.name,
            ),
            config=self.config,
            clock=clock,
            on_lost=lambda _: None,
            log=LOG,
        )
        self.membership, self.leases = self.balancer.membership, self.balancer.leases

    async def enter(self) -> None:
        """Write the member record, and poll once: a new membership is not acted upon at once."""
        await self.membership.enter(
            answer_within=timedelta(seconds=12), poll_interval=timedelta(seconds=1)
        )
        await self.poll()

    async def poll(self, busy=()):
        """Run a cycle, a moment later."""
        await seconds(0.3)
        return await self.balancer.cycle(self.partition_ids, busy, ())

    async def leave(self, running=()):
        """Run a cycle with the status *leaving*."""
        await self.membership.change_to(MemberStatus.LEAVING)
        return await self.balancer.cycle(self.partition_ids, (), running)

    async def join(self, owner_id: str, status=MemberStatus.ACTIVE) -> None:
        """Write a member record of another processor."""
        member = Member(
            owner_id=owner_id,
            incarnation="2",
            status=status,
            placement=self.placement.name,
        )
        await self.store.announce_member(self.setup.group, member)

    async def renew(self, owner_id: str) -> None:
        """Write the member record of another processor again."""
        found = self.setup.account.records(self.setup.group).member_by_owner[owner_id]
        await self.store.announce_member(self.setup.group, found)

    async def record(self, partition_id: str, owner_id: str) -> None:
        """Write an ownership record of the given owner."""
        claim = OwnershipClaim(
            partition_id=partition_id,
            owner_id=owner_id,
            expected_etag=self.etags.get(partition_id),
        )
        await self.store.claim_ownership(self.setup.group, [claim])

    def replace_between_listings(self) -> None:
        """Before ownership is listed next, have a second processor "me" join and claim "0"."""
        listing = self.store.list_ownership

        async def list_after_twin_claimed(group):
            self.store.list_ownership = listing  # type: ignore[method-assign]
            mine = self.setup.account.records(group).member_by_owner["me"]
            await self.store.announce_member(group, replace(mine, incarnation="2"))
            await self.record("0", "me")
            return await listing(group)

        self.store.list_ownership = list_after_twin_claimed  # type: ignore[method-assign]

    @property
    def etags(self) -> dict[str, str]:
        """The ETag of each ownership record."""
        records = self.setup.account.records(self.setup.group).ownership_by_partition
        return {p: record.etag for p, record in records.items()}


def run(scenario, partition_count=1, placement=None) -> None:
    """Run a scenario on virtual time."""

    async def main() -> None:
        fixture = BalancerFixture(partition_count, placement)
        async with fixture.store:
            await scenario(fixture)

    run_virtual(main())
