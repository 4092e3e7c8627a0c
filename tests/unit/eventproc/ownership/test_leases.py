"""Leases count from before a confirmed write was sent; one write of a partition at a time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.errors import StoreError, StoreUnavailableError
from eventproc.logs import get_logger
from eventproc.models import OwnershipClaim, WriteOutcome
from eventproc.ownership.leases import Leases
from eventproc.testing import FaultyCheckpointStore, StoreFaults
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene, seconds

EXPIRATION = timedelta(seconds=60)


class Slow(MemoryCheckpointStore):
    """Delays each write, and then its answer."""

    there_s = 0.0
    back_s = 0.0

    async def claim_ownership(self, group, claims):
        """Finish a write even if its caller is cancelled."""
        return await asyncio.shield(asyncio.create_task(self._act(group, claims)))

    async def _act(self, group, claims):
        await asyncio.sleep(self.there_s)
        await self.open()  # The far end is there, whatever was closed at this one.
        results = await super().claim_ownership(group, claims)
        await asyncio.sleep(self.back_s)
        return results


class LeasesFixture:
    """The leases of one processor, with a store that is slow and fails."""

    def __init__(
        self,
        *,
        is_sole_holder: Callable[[], Awaitable[bool]] | None = None,
        session_trusted_until_s: Callable[[], float] | None = None,
    ) -> None:
        self.scene = Scene()
        self.slow = Slow(self.scene.account)
        self.line = FaultyCheckpointStore(self.slow, Random(0))
        self.lost: list[str] = []
        self.leases = Leases(
            self.line,
            self.scene.group,
            "me",
            expiration=EXPIRATION,
            clock=asyncio.get_running_loop().time,
            on_lost=self.lost.append,
            log=get_logger("eventproc.test"),
            is_sole_holder=is_sole_holder,
            session_trusted_until_s=session_trusted_until_s,
        )

    async def doubt(self) -> None:
        """Renew all leases, with the answers lost."""
        self.line.faults = StoreFaults(answer_lost_rate=1.0)
        await self.leases.renew_all()
        self.line.faults = StoreFaults()

    async def claim(self, *partition_ids: str) -> None:
        """Claim partitions without an owner."""
        await self.line.open()
        await self.leases.claim(
            [
                OwnershipClaim(partition_id=p, owner_id="me", expected_etag=None)
                for p in partition_ids
            ]
        )

    async def steal(self, partition_id: str) -> None:
        """Let another processor steal a partition."""
        records = self.scene.account.records(self.scene.group).ownership_by_partition
        thief = OwnershipClaim(
            partition_id=partition_id, owner_id="thief", expected_etag=records[partition_id].etag
        )
        async with MemoryCheckpointStore(self.scene.account) as store:
            (result,) = await store.claim_ownership(self.scene.group, [thief])
        assert result.outcome is WriteOutcome.WON


def test_a_lease_counts_from_before_it_was_sent():
    """Even if the answer is late: a processor that takes over counts from the write."""

    async def story():
        fixture = LeasesFixture()
        fixture.slow.there_s, fixture.slow.back_s = 5.0, 30.0
        await fixture.claim("0")
        first_s = fixture.leases.trusted_until_s("0")
        await fixture.leases.renew_due()
        return (
            first_s,
            fixture.leases.trusted_until_s("0"),
            fixture.leases.is_any_trusted,
        )

    assert run_virtual(story()) == (54.0, 35.0 + 54.0, True)


def test_a_partition_without_a_lease_is_not_trusted():
    """It can neither be verified nor handed over."""

    async def story():
        leases = LeasesFixture().leases
        return (
            leases.trusted_until_s("0"),
            await leases.verify("0"),
            await leases.transfer("0", None),
        )

    assert run_virtual(story()) == (float("-inf"), False, WriteOutcome.LOST)


def test_writes_of_one_partition_do_not_overlap():
    """The second would conflict with the first one's new ETag, and the lease would be lost."""

    async def story():
        fixture = LeasesFixture()
        await fixture.claim("0", "1")
        fixture.slow.there_s = fixture.slow.back_s = 2.0
        await seconds(25)
        verified = await asyncio.gather(
            fixture.leases.renew_due(),
            fixture.leases.verify("0"),
            fixture.leases.verify("0"),
        )
        return verified[1:], fixture.lost, fixture.leases.held

    assert run_virtual(story()) == ([True, True], [], {"0", "1"})


def test_a_renewal_whose_answer_was_lost_is_recognised():
    """The next renewal is refused because of the ETag; reading shows that the record is our own."""

    async def story():
        fixture = LeasesFixture()
        await fixture.claim("0")
        await seconds(25)
        fixture.line.faults = StoreFaults(answer_lost_rate=1.0)
        await fixture.leases.renew_due()
        until_s = fixture.leases.trusted_until_s("0")
        fixture.line.faults = StoreFaults()
        await fixture.leases.renew_due()
        return until_s, fixture.leases.trusted_until_s("0"), fixture.lost

    assert run_virtual(story()) == (54.0, 79.0, [])


def test_a_record_that_a_duplicate_owner_may_have_written_is_not_an_own_renewal():
    """Both write the same owner id, so the record does not show whose it is: the lease is lost."""

    async def story():
        async def has_company() -> bool:
            return False

        fixture = LeasesFixture(is_sole_holder=has_company)
        await fixture.claim("0")
        await fixture.doubt()
        is_ours = await fixture.leases.verify("0")
        return is_ours, fixture.leases.held, fixture.lost

    assert run_virtual(story()) == (False, set(), ["0"])


def test_a_duplicate_owner_is_checked_after_the_record_was_read():
    """It writes its member record first, so a check after reading its ownership record finds it."""

    async def story():
        written: list[str] = []

        async def is_alone() -> bool:
            return not written

        fixture = LeasesFixture(is_sole_holder=is_alone)
        await fixture.claim("0")
        await fixture.doubt()
        listing = fixture.line.list_ownership

        async def come_first(group):
            written.append("presence")
            return await listing(group)

        fixture.line.list_ownership = come_first  # type: ignore[method-assign]
        return await fixture.leases.verify("0"), fixture.lost

    assert run_virtual(story()) == (False, ["0"])


def test_a_lease_stays_doubtful_if_the_member_records_cannot_be_read():
    """The ownership record could be read, the member record could not: neither lost nor trusted."""

    async def story():
        async def unknown() -> bool:
            raise StoreUnavailableError("no answer")

        fixture = LeasesFixture(is_sole_holder=unknown)
        await fixture.claim("0")
        await fixture.doubt()
        with pytest.raises(StoreError, match="could not be verified"):
            await fixture.leases.verify("0")
        return fixture.leases.trusted_until_s("0"), fixture.lost

    assert run_virtual(story()) == (54.0, [])


def test_in_session_mode_a_listing_counts_from_its_request():
    """Not from its answer, nor from the renewal of a lease that it contradicts."""

    async def story():
        fixture = LeasesFixture(session_trusted_until_s=lambda: 1000.0)
        await fixture.claim("0", "1")
        await fixture.steal("1")
        await seconds(10)
        listed = await fixture.line.list_ownership(fixture.scene.group)
        await seconds(20)
        fixture.slow.there_s = fixture.slow.back_s = 5.0
        await fixture.leases.compare(listed, 10.0)
        return fixture.leases.trusted_until_s("0")

    assert run_virtual(story()) == 64.0


def test_a_claim_of_unknown_outcome_gives_no_lease():
    """Another processor may have won; the next poll shows the owner."""

    async def story():
        fixture = LeasesFixture()
        fixture.line.faults = StoreFaults(answer_lost_rate=1.0)
        await fixture.claim("0")
        return fixture.leases.held, fixture.leases.is_any_trusted

    assert run_virtual(story()) == (set(), False)


def test_a_claim_under_way_when_the_processor_is_fenced_gives_no_lease():
    """The partition may have been claimed by another processor since."""

    async def story():
        fixture = LeasesFixture()
        fixture.slow.back_s = 5.0
        claiming = asyncio.create_task(fixture.claim("0"))
        await seconds(1)
        fixture.leases.lose_all()
        await claiming
        return fixture.leases.held

    assert run_virtual(story()) == set()


def test_a_renewal_of_unknown_outcome_renews_nothing():
    """The lease is trusted as long as by the last confirmed write, and ``verify`` raises."""

    async def story():
        fixture = LeasesFixture()
        await fixture.claim("0")
        await seconds(25)
        fixture.line.is_out = True
        await fixture.leases.renew_due()
        with pytest.raises(StoreError, match="could not be verified"):
            await fixture.leases.verify("0")
        return fixture.leases.trusted_until_s("0")

    assert run_virtual(story()) == 54.0


def test_a_lease_stays_doubtful_while_the_store_does_not_answer():
    """It is neither trusted again nor lost."""

    async def story():
        fixture = LeasesFixture()
        await fixture.claim("0")
        fixture.line.is_out = True
        with pytest.raises(StoreError):
            await fixture.leases.verify("0")
        return fixture.leases.held, fixture.lost

    assert run_virtual(story()) == ({"0"}, [])


def test_a_doubtful_lease_is_lost_if_the_record_names_another_owner():
    """The partition was stolen after the renewal of unknown outcome."""

    async def story():
        fixture = LeasesFixture()
        await fixture.claim("0")
        fixture.line.faults = StoreFaults(answer_lost_rate=1.0)
        await seconds(25)
        await fixture.leases.renew_due()
        fixture.line.faults = StoreFaults()
        await fixture.steal("0")
        is_ours = await fixture.leases.verify("0")
        return is_ours, fixture.leases.held, fixture.lost

    assert run_virtual(story()) == (False, set(), ["0"])


def test_a_listing_that_contradicts_is_checked_by_a_write():
    """A listing that was requested before the claim was answered contradicts nothing."""

    async def story():
        fixture = LeasesFixture()
        async with fixture.line:
            asked_at_s = asyncio.get_running_loop().time()
            old = await fixture.line.list_ownership(fixture.scene.group)
            await seconds(1)
            await fixture.claim("0", "1")
            written = fixture.leases.write_count
            await fixture.leases.compare(old, asked_at_s)
            needless = fixture.leases.write_count - written
            await seconds(1)
            await fixture.steal("1")
            asked_at_s = asyncio.get_running_loop().time()
            new = await fixture.line.list_ownership(fixture.scene.group)
            await fixture.leases.compare(new, asked_at_s)
        return needless, fixture.lost, fixture.leases.held

    assert run_virtual(story()) == (0, ["1"], {"0"})


@pytest.mark.parametrize(
    "faults", [StoreFaults(answer_lost_rate=1.0), StoreFaults(throttle_rate=1.0)]
)
def test_a_transfer_of_unknown_outcome_is_read_and_repeated_once(faults):
    """It is written again only if the record still names this processor."""

    async def story():
        fixture = LeasesFixture()
        await fixture.claim("0")
        fixture.line.faults = faults
        listing = fixture.line.list_ownership

        async def heal_first(group):
            fixture.line.faults = StoreFaults()
            return await listing(group)

        fixture.line.list_ownership = heal_first  # type: ignore[method-assign]
        await fixture.leases.transfer("0", "other")
        return fixture.scene.owners(), fixture.leases.held

    assert run_virtual(story()) == ({"0": "other"}, set())


@pytest.mark.parametrize("after_s", [0.5, 3.0])
def test_a_claim_under_way_at_a_stop_is_released(after_s):
    """Leaving waits for the cycle that sent it; else the partition would stay owned, unserved."""

    async def story():
        scene = Scene(3)
        processor = scene.processor()
        slow = Slow(scene.account)
        slow.there_s = slow.back_s = 2.0
        scene.store_by_owner["a"].store = slow
        await processor.start()
        await seconds(after_s)
        await processor.stop()
        await seconds(10)
        return set(scene.owners().values())

    assert run_virtual(story()) <= {None}


def test_reading_trust_from_another_thread_never_sees_new_trust_before_the_doubt():
    """The session is renewed between the two reads of the handlers' thread."""

    async def story():
        def come_back() -> float:
            fixture.leases.doubt_all()
            return 113.0

        fixture = LeasesFixture(session_trusted_until_s=come_back)
        await fixture.claim("0")
        await seconds(59)
        await fixture.leases.compare(await fixture.line.list_ownership(fixture.scene.group), 59.0)
        return fixture.leases.trusted_until_s("0")

    assert run_virtual(story()) == 54.0
