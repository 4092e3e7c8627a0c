"""Leases by session: one record keeps alive all that a processor owns."""

import asyncio
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import ConfigurationError, LeaseMode
from eventproc.membership import MemberStatus
from eventproc.models import OwnershipClaim
from eventproc.testing.virtual_time import run_virtual
from tests.unit.eventproc.scene import Scene, seconds

SESSION: dict[str, Any] = {"lease_mode": LeaseMode.SESSION}


async def started(scene, names, **settings):
    """Start processors at the same time."""
    processors = [scene.processor(owner_id=name, **{**SESSION, **settings}) for name in names]
    await asyncio.gather(*(processor.start() for processor in processors))
    return processors


async def stop_all(processors):
    """Stop whatever runs."""
    await asyncio.gather(*(processor.stop() for processor in processors))


async def opened(scene):
    """A store for whoever is no processor of ours."""
    store = MemoryCheckpointStore(scene.account)
    await store.open()
    return store


@contextmanager
def counting_operations():
    """Count what any processor asks of the store."""
    count: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("list_ownership", "list_members", "claim_ownership", "announce_member"):
            real = getattr(MemoryCheckpointStore, name)

            def counted(self, *args, name=name, real=real):
                count[name] += 1
                return real(self, *args)

            patch.setattr(MemoryCheckpointStore, name, counted)
        yield count


def members(scene):
    """The presence records, read without asking the store."""
    return scene.account.records(scene.group).member_by_owner


@pytest.mark.parametrize("partition_count", [2, 64, 1024])
def test_the_steady_cost_does_not_depend_on_the_partitions(partition_count):
    """Two operations for each processor and interval: a look, and half a renewal or so."""

    async def story():
        scene = Scene(partition_count)
        processors = await started(scene, ["a", "b"])
        await seconds(30)
        with counting_operations() as count:
            await seconds(600)
        await stop_all(processors)
        return count.total()

    operations = run_virtual(story())

    assert operations <= 2 * 60 * 2


def test_ownership_records_are_not_renewed():
    """They are as old as the last change, and everybody still knows their owner."""

    async def story():
        scene = Scene(4)
        processors = await started(scene, ["a", "b"])
        await seconds(5)
        before = scene.account.records(scene.group).ownership_by_partition.copy()
        await seconds(600)
        after = scene.account.records(scene.group).ownership_by_partition.copy()
        scene.publish(1, "0")
        await seconds(1)
        handled = list(scene.handled)
        await stop_all(processors)
        return before, after, handled

    before, after, handled = run_virtual(story())

    assert before == after
    assert handled == [("0", 0)]


def test_a_dead_owner_is_declared_dead_and_replaced():
    """After an expiration, as with a lease for each partition."""

    async def story():
        scene = Scene(6)
        processors = await started(scene, ["a", "b", "c"])
        await seconds(30)
        scene.store_by_owner["a"].is_out = True
        await seconds(45)
        before = Counter(scene.owners().values())
        await seconds(35)
        after = Counter(scene.owners().values())
        status = members(scene)["a"].status
        scene.store_by_owner["a"].is_out = False
        await seconds(60)
        again = Counter(scene.owners().values())
        await stop_all(processors)
        return before, after, status, again

    before, after, status, again = run_virtual(story())

    assert before == {"a": 2, "b": 2, "c": 2}
    assert after == {"b": 3, "c": 3}
    assert status is MemberStatus.DEAD
    assert again == {"a": 2, "b": 2, "c": 2}


def test_a_declaration_and_a_renewal_cannot_both_succeed():
    """Whoever comes second learns it, and what it owned is claimed anew or not at all."""

    async def story():
        scene = Scene(2)
        (a,) = await started(scene, ["a"])
        await seconds(5)
        record = members(scene)["a"]
        other = await opened(scene)
        await other.announce_member(scene.group, replace(record, status=MemberStatus.DEAD))
        etag = scene.account.records(scene.group).ownership_by_partition["0"].etag
        await other.claim_ownership(
            scene.group,
            [OwnershipClaim(partition_id="0", owner_id="thief", expected_etag=etag)],
        )
        await seconds(25)
        revived, owned = members(scene)["a"].status, a.statistics().owned
        lost_count = a.statistics().lost_count
        await a.stop()
        return revived, owned, lost_count

    revived, owned, lost_count = run_virtual(story())

    assert revived is MemberStatus.ACTIVE
    assert owned == ("1",)
    assert lost_count == 2


def test_who_learns_as_it_leaves_that_it_is_dead_drops_everything():
    """What it says of itself then would make its old records look alive again."""

    async def story():
        scene = Scene(2)
        (a,) = await started(scene, ["a"])
        await seconds(5)
        other = await opened(scene)
        dead = replace(members(scene)["a"], status=MemberStatus.DEAD)
        await other.announce_member(scene.group, dead)
        await a.stop()
        return a.statistics().lost_count, scene.owners(), set(members(scene))

    lost_count, owners, there = run_virtual(story())

    assert lost_count == 2
    assert set(owners.values()) == {None}
    assert not there


@pytest.mark.parametrize("at_s", [100, 101, 103, 105, 107])
def test_a_presence_record_that_was_deleted_by_hand_robs_nobody(at_s):
    """The owner writes it again at its next renewal; until then everybody waits and watches."""

    async def story():
        scene = Scene(4)
        processors = await started(scene, ["a", "b"])
        await seconds(at_s)
        before = scene.owners()
        del members(scene)["a"]
        while_gone = []
        for _ in range(150):
            await seconds(0.1)
            while_gone.append(scene.owners())
        await seconds(60)
        after = scene.owners()
        await stop_all(processors)
        return before, while_gone, after

    before, while_gone, after = run_virtual(story())

    assert while_gone == [before] * 150
    assert Counter(after.values()) == Counter(before.values())


@pytest.mark.parametrize("first", LeaseMode)
def test_two_modes_cannot_share_a_group(first):
    """One of them would take the other's owners for dead."""
    second = next(mode for mode in LeaseMode if mode is not first)

    async def story():
        scene = Scene(2)
        (a,) = await started(scene, ["a"], lease_mode=first)
        await seconds(5)
        with pytest.raises(ConfigurationError, match="live processors of the group have another"):
            await scene.processor(owner_id="b", lease_mode=second).start()
        there = set(members(scene))
        await a.stop()
        return there

    assert run_virtual(story()) == {"a"}


def test_sessions_are_refused_beside_a_processor_of_another_sdk():
    """It writes no presence, and takes every record that is not renewed."""

    async def story():
        scene = Scene(2)
        stranger = await opened(scene)
        await stranger.claim_ownership(
            scene.group,
            [OwnershipClaim(partition_id="0", owner_id="stranger", expected_etag=None)],
        )
        with pytest.raises(ConfigurationError, match=r"belong to another SDK \(stranger\)"):
            await scene.processor(owner_id="a", **SESSION).start()

    run_virtual(story())


def test_a_stranger_that_comes_later_finds_every_record_renewed():
    """It is an error that is logged; but nobody loses everything for it."""

    async def story():
        scene = Scene(4)
        (a,) = await started(scene, ["a"])
        await seconds(100)
        stranger = await opened(scene)
        records = scene.account.records(scene.group).ownership_by_partition
        await stranger.claim_ownership(
            scene.group,
            [
                OwnershipClaim(
                    partition_id="0", owner_id="stranger", expected_etag=records["0"].etag
                )
            ],
        )
        await seconds(58)
        ages = [scene.now() - record.last_modified for record in records.values()]
        await a.stop()
        return ages

    assert max(run_virtual(story())) < timedelta(seconds=60)


def test_a_restart_under_the_same_id_moves_nothing():
    """The new incarnation keeps alive what the old one owned, and takes it up."""

    async def story():
        scene = Scene(4)
        a, b = await started(scene, ["a", "b"])
        await seconds(100)
        before = scene.owners()
        scene.store_by_owner["a"].is_out = True
        (again,) = await started(scene, ["a"])
        await seconds(5)
        after = scene.owners()
        owned = again.statistics().owned
        await stop_all([again, b])
        return before, after, owned, a

    before, after, owned, _ = run_virtual(story())

    assert after == before
    assert len(owned) == 2


def test_who_leaves_in_good_order_leaves_nothing_behind():
    """Everything is handed over, and the presence record is gone."""

    async def story():
        scene = Scene(6)
        a, b = await started(scene, ["a", "b"])
        await seconds(30)
        for p in range(6):
            scene.publish(2, str(p))
        await a.stop()
        owners, there = scene.owners(), set(members(scene))
        await seconds(2)
        await b.stop()
        return owners, there, sorted(scene.handled)

    owners, there, handled = run_virtual(story())

    assert set(owners.values()) == {"b"}
    assert there == {"b"}
    assert handled == [(str(p), n) for p in range(6) for n in range(2)]
