"""Leases: what counts is what was confirmed, from before it was sent, one write at a time."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from random import Random

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.errors import StoreError
from eventproc.leases import Leases
from eventproc.logs import get_logger
from eventproc.models import OwnershipClaim, WriteOutcome
from eventproc.testing import FaultyCheckpointStore, StoreFaults
from eventproc.testing.virtual_time import run_virtual
from tests.unit.eventproc.scene import Scene, seconds

EXPIRATION = timedelta(seconds=60)


class Slow(MemoryCheckpointStore):
    """Takes its time before it acts, and again before it answers."""

    there_s = 0.0
    back_s = 0.0

    async def claim_ownership(self, group, claims):
        """What is on its way arrives, even if nobody waits for it any more."""
        return await asyncio.shield(asyncio.create_task(self._act(group, claims)))

    async def _act(self, group, claims):
        await asyncio.sleep(self.there_s)
        await self.open()  # The far end is there, whatever was closed at this one.
        results = await super().claim_ownership(group, claims)
        await asyncio.sleep(self.back_s)
        return results


class Desk:
    """The leases of one processor, over a slow and faulty line to the store."""

    def __init__(self, *, session_trusted_until_s: Callable[[], float] | None = None) -> None:
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
            session_trusted_until_s=session_trusted_until_s,
        )

    async def claim(self, *partition_ids: str) -> None:
        """Claim partitions that nobody has."""
        await self.line.open()
        await self.leases.claim(
            [
                OwnershipClaim(partition_id=p, owner_id="me", expected_etag=None)
                for p in partition_ids
            ]
        )

    async def rob(self, partition_id: str) -> None:
        """Let somebody else take a partition."""
        records = self.scene.account.records(self.scene.group).ownership_by_partition
        thief = OwnershipClaim(
            partition_id=partition_id, owner_id="thief", expected_etag=records[partition_id].etag
        )
        async with MemoryCheckpointStore(self.scene.account) as store:
            (result,) = await store.claim_ownership(self.scene.group, [thief])
        assert result.outcome is WriteOutcome.WON


def test_a_lease_counts_from_before_it_was_sent():
    """However late the answer comes: a taker counts from when it was written."""

    async def story():
        desk = Desk()
        desk.slow.there_s, desk.slow.back_s = 5.0, 30.0
        await desk.claim("0")
        first_s = desk.leases.trusted_until_s("0")
        await desk.leases.renew_due()
        return first_s, desk.leases.trusted_until_s("0"), desk.leases.is_any_trusted

    assert run_virtual(story()) == (54.0, 35.0 + 54.0, True)


def test_what_is_not_held_is_not_trusted():
    """Not at any time."""

    async def story():
        leases = Desk().leases
        return leases.trusted_until_s("0"), await leases.verify("0"), await leases.give("0", None)

    assert run_virtual(story()) == (float("-inf"), False, WriteOutcome.LOST)


def test_two_writes_of_one_partition_never_meet():
    """The second would find the etag of the first, and take the partition for lost."""

    async def story():
        desk = Desk()
        await desk.claim("0", "1")
        desk.slow.there_s = desk.slow.back_s = 2.0
        await seconds(25)
        verified = await asyncio.gather(
            desk.leases.renew_due(), desk.leases.verify("0"), desk.leases.verify("0")
        )
        return verified[1:], desk.lost, desk.leases.held

    assert run_virtual(story()) == ([True, True], [], {"0", "1"})


def test_a_renewal_that_took_effect_unheard_is_recognised():
    """The next one finds another etag; reading tells that it is our own."""

    async def story():
        desk = Desk()
        await desk.claim("0")
        await seconds(25)
        desk.line.faults = StoreFaults(answer_lost_rate=1.0)
        await desk.leases.renew_due()
        until_s = desk.leases.trusted_until_s("0")
        desk.line.faults = StoreFaults()
        await desk.leases.renew_due()
        return until_s, desk.leases.trusted_until_s("0"), desk.lost

    assert run_virtual(story()) == (54.0, 79.0, [])


def test_a_claim_of_unknown_outcome_gives_no_lease():
    """Perhaps somebody else was first; the next look tells."""

    async def story():
        desk = Desk()
        desk.line.faults = StoreFaults(answer_lost_rate=1.0)
        await desk.claim("0")
        return desk.leases.held, desk.leases.is_any_trusted

    assert run_virtual(story()) == (set(), False)


def test_a_claim_that_was_under_way_when_all_was_lost_gives_no_lease():
    """Whoever declared this processor dead may have taken the partition since."""

    async def story():
        desk = Desk()
        desk.slow.back_s = 5.0
        claiming = asyncio.create_task(desk.claim("0"))
        await seconds(1)
        desk.leases.lose_all()
        await claiming
        return desk.leases.held

    assert run_virtual(story()) == set()


def test_a_renewal_of_unknown_outcome_renews_nothing():
    """It is trusted no longer than the last one that was confirmed; verification says so."""

    async def story():
        desk = Desk()
        await desk.claim("0")
        await seconds(25)
        desk.line.is_out = True
        await desk.leases.renew_due()
        with pytest.raises(StoreError, match="could not be verified"):
            await desk.leases.verify("0")
        return desk.leases.trusted_until_s("0")

    assert run_virtual(story()) == 54.0


def test_a_doubt_that_cannot_be_settled_stays_one():
    """Nobody says that it is ours, and nobody that it is not."""

    async def story():
        desk = Desk()
        await desk.claim("0")
        desk.line.is_out = True
        with pytest.raises(StoreError):
            await desk.leases.verify("0")
        return desk.leases.held, desk.lost

    assert run_virtual(story()) == ({"0"}, [])


def test_what_was_stolen_while_in_doubt_is_lost():
    """The record names somebody else: then the doubt is over."""

    async def story():
        desk = Desk()
        await desk.claim("0")
        desk.line.faults = StoreFaults(answer_lost_rate=1.0)
        await seconds(25)
        await desk.leases.renew_due()
        desk.line.faults = StoreFaults()
        await desk.rob("0")
        is_ours = await desk.leases.verify("0")
        return is_ours, desk.leases.held, desk.lost

    assert run_virtual(story()) == (False, set(), ["0"])


def test_a_listing_that_contradicts_is_checked_by_a_write():
    """It is a hint; one that was asked for before the claim was answered is none."""

    async def story():
        desk = Desk()
        async with desk.line:
            asked_at_s = asyncio.get_running_loop().time()
            old = await desk.line.list_ownership(desk.scene.group)
            await seconds(1)
            await desk.claim("0", "1")
            written = desk.leases.write_count
            await desk.leases.compare(old, asked_at_s)
            needless = desk.leases.write_count - written
            await seconds(1)
            await desk.rob("1")
            asked_at_s = asyncio.get_running_loop().time()
            new = await desk.line.list_ownership(desk.scene.group)
            await desk.leases.compare(new, asked_at_s)
        return needless, desk.lost, desk.leases.held

    assert run_virtual(story()) == (0, ["1"], {"0"})


@pytest.mark.parametrize(
    "faults", [StoreFaults(answer_lost_rate=1.0), StoreFaults(throttle_rate=1.0)]
)
def test_a_gift_of_unknown_outcome_is_looked_into_once(faults):
    """If it took effect that is fine, and else it is written again."""

    async def story():
        desk = Desk()
        await desk.claim("0")
        desk.line.faults = faults
        listing = desk.line.list_ownership

        async def heal_first(group):
            desk.line.faults = StoreFaults()
            return await listing(group)

        desk.line.list_ownership = heal_first  # type: ignore[method-assign]
        await desk.leases.give("0", "other")
        return desk.scene.owners(), desk.leases.held

    assert run_virtual(story()) == ({"0": "other"}, set())


@pytest.mark.parametrize("after_s", [0.5, 3.0])
def test_a_claim_under_way_at_a_stop_is_given_back(after_s):
    """The farewell waits for the look that sent it; else the partition would be owned unserved."""

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


def test_a_doubt_and_new_trust_are_not_seen_in_the_wrong_order():
    """The thread of the handlers asks; between its two looks the session comes back to life."""

    async def story():
        def come_back() -> float:
            desk.leases.doubt_all()
            return 113.0

        desk = Desk(session_trusted_until_s=come_back)
        await desk.claim("0")
        await seconds(59)
        await desk.leases.compare(await desk.line.list_ownership(desk.scene.group), 59.0)
        return desk.leases.trusted_until_s("0")

    assert run_virtual(story()) == 54.0
