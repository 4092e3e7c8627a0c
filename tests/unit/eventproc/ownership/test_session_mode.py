"""Session leases: one record keeps alive all ownerships of a processor."""

import asyncio
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import ConfigurationError, LeaseMode
from eventproc.models import MemberStatus, OwnershipClaim
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene, seconds

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
    """A store, for writes of an Azure SDK processor."""
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
    """At most two operations for each processor and interval: a poll, and sometimes a renewal."""

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
    """They are as old as the last change, and still have a live owner."""

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


def test_a_dead_owner_is_fenced_and_replaced():
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


def test_fencing_and_a_renewal_cannot_both_succeed():
    """A processor that was fenced drops its leases before it claims again."""

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


def test_a_leaving_processor_that_was_fenced_drops_its_leases():
    """Its new status would make its old ownership records look alive again."""

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
def test_a_member_record_deleted_by_an_operator_costs_no_partition(at_s):
    """The owner writes it again at its next renewal, within the expiration that others wait."""

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
    """Processors of one mode would consider the live owners of the other dead."""
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
    """It writes no member record, and claims every partition whose record is not renewed."""

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


def test_a_foreign_member_that_joins_later_finds_every_record_renewed():
    """An error is logged, and the members renew each record so that they keep their partitions."""

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
    """The new incarnation's member record keeps the old ownerships alive, and it serves them."""

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


def test_a_stop_releases_every_partition_and_deletes_the_member_record():
    """The partitions are handed over to the members that stay."""

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
