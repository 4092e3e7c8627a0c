"""Sessions that were not renewed: what is handled meanwhile, and what is trusted afterwards."""

import asyncio
from typing import Any

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import LeaseMode, PartitionHandler
from eventproc.errors import StoreUnavailableError
from eventproc.models import MemberResult, OwnershipClaim, WriteOutcome
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene, seconds

SESSION: dict[str, Any] = {"lease_mode": LeaseMode.SESSION}


class Slow(PartitionHandler):
    """Works for ever, and records whether its lease was trusted."""

    def __init__(self, notes):
        self.notes = notes

    async def process_events(self, context, events):
        """Record and sleep a second, again and again."""
        while True:
            self.notes.append((context.owner_id, context.is_owned))
            await asyncio.sleep(1)


async def at_work():
    """Return a scene, the processor ``a`` at work on its only partition, and its records."""
    scene = Scene(1)
    notes: list[tuple[str, bool]] = []
    a = scene.processor(lambda: Slow(notes), owner_id="a", **SESSION)
    await a.start()
    scene.publish(1)
    await seconds(30)
    return scene, a, notes


async def claim_after_deletion(scene):
    """Delete the ownership records, and claim the partition for another owner."""
    scene.account.records(scene.group).ownership_by_partition.clear()
    async with MemoryCheckpointStore(scene.account) as store:
        claim = OwnershipClaim(partition_id="0", owner_id="b", expected_etag=None)
        await store.claim_ownership(scene.group, [claim])


def test_a_processor_without_answers_stops_before_others_take_over():
    """It cannot read that it was fenced, so it stops by its own clock."""

    async def story():
        scene, a, notes = await at_work()
        async with scene.processor(owner_id="b", **SESSION):
            scene.store_by_owner["a"].is_out = True
            await seconds(100)
            took_over = scene.owners()["0"]
            scene.store_by_owner["a"].is_out = False
            await a.stop()
        return notes, took_over

    notes, took_over = run_virtual(story())

    assert took_over == "b"
    assert all(is_owned for _, is_owned in notes)


def test_after_an_outage_a_processor_serves_nothing_that_others_claimed():
    """Its member record, written again, does not prove that it owns a partition.

    Its ownership record was deleted by an operator meanwhile, so it did not need to be fenced.
    """

    async def story():
        scene, a, notes = await at_work()
        async with scene.processor(owner_id="b", **SESSION):
            scene.store_by_owner["a"].is_out = True
            scene.account.records(scene.group).ownership_by_partition.clear()
            await seconds(100)
            took_over, silent = scene.owners(), len(notes)
            scene.store_by_owner["a"].is_out = False
            await seconds(30)
            await a.stop()
        return took_over, notes[silent:]

    assert run_virtual(story()) == ({"0": "b"}, [])


def test_a_session_renewed_late_trusts_no_lease_that_is_not_verified():
    """While its listing of records is under way no event is handled.

    Only the member record could not be written before. Meanwhile another processor has claimed
    the partition.
    """

    async def story():
        scene, a, notes = await at_work()
        store: Any = scene.store_by_owner["a"]
        announce, list_records = store.announce_member, store.list_ownership

        async def lose_writes(*_):
            return MemberResult(outcome=WriteOutcome.UNKNOWN)

        async def slow(*arguments):
            listed = await list_records(*arguments)
            await seconds(15)
            return listed

        store.announce_member = lose_writes
        await seconds(100)
        silent = len(notes)
        await claim_after_deletion(scene)
        store.announce_member, store.list_ownership = announce, slow
        await seconds(40)
        await a.stop()
        return notes[silent:]

    assert run_virtual(story()) == []


def test_a_processor_that_cannot_read_the_ownership_records_stops():
    """Its session is renewed, but a partition may have been stolen since the last full poll."""

    async def story():
        scene, a, notes = await at_work()

        async def no_answer(_):
            raise StoreUnavailableError("no answer")

        store: Any = scene.store_by_owner["a"]
        store.list_ownership = no_answer
        await seconds(60)
        until_then = len(notes)
        await seconds(120)
        later = notes[until_then:]
        await a.stop()
        return notes[until_then - 1], later

    assert run_virtual(story()) == (("a", True), [])


def test_a_listing_counts_from_its_request():
    """The partition may have been stolen while the answer was under way."""

    async def story():
        scene, a, _ = await at_work()
        store: Any = scene.store_by_owner["a"]
        list_records, asked_at_s = store.list_ownership, []

        async def slow(*arguments):
            asked_at_s.append(asyncio.get_running_loop().time())
            listed = await list_records(*arguments)
            await seconds(15)
            return listed

        store.list_ownership = slow
        while not asked_at_s:
            await seconds(1)
        await seconds(25)  # The session was renewed since, and would last longer.
        run = a._run
        assert run is not None
        until_s = run.leases.trusted_until_s("0")
        await a.stop()
        return until_s - asked_at_s[0]

    assert run_virtual(story()) == 54.0
