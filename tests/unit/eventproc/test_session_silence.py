"""Sessions that were silent: what is handled then, and what is trusted afterwards."""

import asyncio
from typing import Any

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import LeaseMode, PartitionHandler
from eventproc.errors import StoreUnavailableError
from eventproc.membership import MemberResult
from eventproc.models import OwnershipClaim, WriteOutcome
from eventproc.testing.virtual_time import run_virtual
from tests.unit.eventproc.scene import Scene, seconds

SESSION: dict[str, Any] = {"lease_mode": LeaseMode.SESSION}


class Slow(PartitionHandler):
    """Works for ever, and notes whether it might."""

    def __init__(self, notes):
        self.notes = notes

    async def process_events(self, context, events):
        """Take a second again and again."""
        while True:
            self.notes.append((context.owner_id, context.is_owned))
            await asyncio.sleep(1)


async def at_work():
    """Return a scene, the processor ``a`` that is at work on its only partition, and its notes."""
    scene = Scene(1)
    notes: list[tuple[str, bool]] = []
    a = scene.processor(lambda: Slow(notes), owner_id="a", **SESSION)
    await a.start()
    scene.publish(1)
    await seconds(30)
    return scene, a, notes


async def take_by_hand(scene):
    """Give the partition to another owner, as who deletes records and claims does."""
    scene.account.records(scene.group).ownership_by_partition.clear()
    async with MemoryCheckpointStore(scene.account) as store:
        claim = OwnershipClaim(partition_id="0", owner_id="b", expected_etag=None)
        await store.claim_ownership(scene.group, [claim])


def test_who_hears_no_answer_stops_before_others_take_over():
    """It cannot know that it was declared dead, so it goes by its own clock."""

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


def test_who_comes_back_from_silence_acts_on_nothing_that_others_took():
    """Its presence, written again, says nothing of a record that was deleted by hand meanwhile.

    Nobody had to declare it dead for that: it owned nothing any more.
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


def test_a_session_that_is_back_vouches_for_nothing_that_it_has_not_seen():
    """Its look at the records takes long; meanwhile nothing is handled, though the last was good.

    Only its presence could not be written. As soon as it can, its partition has another owner.
    """

    async def story():
        scene, a, notes = await at_work()
        store: Any = scene.store_by_owner["a"]
        announce, look = store.announce_member, store.list_ownership

        async def mute(*_):
            return MemberResult(outcome=WriteOutcome.UNKNOWN)

        async def slow(*arguments):
            listed = await look(*arguments)
            await seconds(15)
            return listed

        store.announce_member = mute
        await seconds(100)
        silent = len(notes)
        await take_by_hand(scene)
        store.announce_member, store.list_ownership = announce, slow
        await seconds(40)
        await a.stop()
        return notes[silent:]

    assert run_virtual(story()) == []


def test_who_cannot_look_at_the_ownership_records_stops():
    """Its session goes on, but somebody may have taken a partition from it since it looked."""

    async def story():
        scene, a, notes = await at_work()

        async def blind(_):
            raise StoreUnavailableError("no answer")

        store: Any = scene.store_by_owner["a"]
        store.list_ownership = blind
        await seconds(60)
        until_then = len(notes)
        await seconds(120)
        later = notes[until_then:]
        await a.stop()
        return notes[until_then - 1], later

    assert run_virtual(story()) == (("a", True), [])
