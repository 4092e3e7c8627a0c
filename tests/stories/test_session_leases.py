"""Session leases: one member record keeps all partitions of a processor."""

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
    """Stop all of these processors."""
    await asyncio.gather(*(processor.stop() for processor in processors))


async def opened_store(scene):
    """A store, to write as a processor that is not under test."""
    store = MemoryCheckpointStore(scene.account)
    await store.open()
    return store


@contextmanager
def counting_operations():
    """Count the operations that all processors ask of the store."""
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
    """The member records, read without a call of the store."""
    return scene.account.records(scene.group).member_by_owner


@pytest.mark.parametrize("partition_count", [2, 64, 1024])
def test_store_operations_do_not_depend_on_the_number_of_partitions(partition_count):
    """At most two per processor and interval: a poll, and sometimes a renewal."""

    async def scenario():
        scene = Scene(partition_count)
        processors = await started(scene, ["a", "b"])
        await seconds(30)
        with counting_operations() as count:
            await seconds(600)
        await stop_all(processors)
        return count.total()

    operations = run_virtual(scenario())

    assert operations <= 2 * 60 * 2


def test_ownership_records_are_not_renewed():
    """They are as old as the last change, and their owners still serve the partitions."""

    async def scenario():
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

    before, after, handled = run_virtual(scenario())

    assert before == after
    assert handled == [("0", 0)]


def test_a_dead_owner_is_fenced_and_its_partitions_are_claimed():
    """After one expiration, as with partition leases. It gets its share back when it returns."""

    async def scenario():
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
        restarted = Counter(scene.owners().values())
        await stop_all(processors)
        return before, after, status, restarted

    before, after, status, restarted = run_virtual(scenario())

    assert before == {"a": 2, "b": 2, "c": 2}
    assert after == {"b": 3, "c": 3}
    assert status is MemberStatus.DEAD
    assert restarted == {"a": 2, "b": 2, "c": 2}


def test_a_fenced_processor_drops_all_leases_before_it_claims_again():
    """The partition that another processor claimed meanwhile stays with that one."""

    async def scenario():
        scene = Scene(2)
        (a,) = await started(scene, ["a"])
        await seconds(5)
        record = members(scene)["a"]
        other = await opened_store(scene)
        await other.announce_member(scene.group, replace(record, status=MemberStatus.DEAD))
        etag = scene.account.records(scene.group).ownership_by_partition["0"].etag
        await other.claim_ownership(
            scene.group,
            [OwnershipClaim(partition_id="0", owner_id="thief", expected_etag=etag)],
        )
        await seconds(25)
        status, owned = members(scene)["a"].status, a.statistics().owned
        lost_count = a.statistics().lost_count
        await a.stop()
        return status, owned, lost_count

    status, owned, lost_count = run_virtual(scenario())

    assert status is MemberStatus.ACTIVE
    assert owned == ("1",)
    assert lost_count == 2


def test_a_leaving_processor_that_was_fenced_drops_its_leases():
    """Its new status would otherwise make its old ownership records valid again."""

    async def scenario():
        scene = Scene(2)
        (a,) = await started(scene, ["a"])
        await seconds(5)
        other = await opened_store(scene)
        dead = replace(members(scene)["a"], status=MemberStatus.DEAD)
        await other.announce_member(scene.group, dead)
        await a.stop()
        return a.statistics().lost_count, scene.owners(), set(members(scene))

    lost_count, owners, members_left = run_virtual(scenario())

    assert lost_count == 2
    assert set(owners.values()) == {None}
    assert not members_left


@pytest.mark.parametrize("at_s", [100, 101, 103, 105, 107])
def test_a_member_record_deleted_by_an_operator_costs_no_partition(at_s):
    """The owner writes it again at its next renewal, within the expiration that others wait."""

    async def scenario():
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

    before, while_gone, after = run_virtual(scenario())

    assert while_gone == [before] * 150
    assert Counter(after.values()) == Counter(before.values())


@pytest.mark.parametrize("first", LeaseMode)
def test_two_lease_modes_cannot_share_a_group(first):
    """Processors of one mode would consider the live owners of the other dead."""
    second = next(mode for mode in LeaseMode if mode is not first)

    async def scenario():
        scene = Scene(2)
        (a,) = await started(scene, ["a"], lease_mode=first)
        await seconds(5)
        with pytest.raises(ConfigurationError, match="live processors of the group have another"):
            await scene.processor(owner_id="b", lease_mode=second).start()
        members_left = set(members(scene))
        await a.stop()
        return members_left

    assert run_virtual(scenario()) == {"a"}


def test_session_leases_are_refused_beside_a_foreign_member():
    """It writes no member record, and claims every partition whose ownership record is old."""

    async def scenario():
        scene = Scene(2)
        foreign = await opened_store(scene)
        await foreign.claim_ownership(
            scene.group,
            [OwnershipClaim(partition_id="0", owner_id="azure", expected_etag=None)],
        )
        with pytest.raises(ConfigurationError, match=r"belong to an Azure SDK \(azure\)"):
            await scene.processor(owner_id="a", **SESSION).start()

    run_virtual(scenario())


def test_a_foreign_member_that_joins_later_finds_every_record_renewed():
    """The members log an error, and renew each ownership record from then on."""

    async def scenario():
        scene = Scene(4)
        (a,) = await started(scene, ["a"])
        await seconds(100)
        foreign = await opened_store(scene)
        records = scene.account.records(scene.group).ownership_by_partition
        await foreign.claim_ownership(
            scene.group,
            [OwnershipClaim(partition_id="0", owner_id="azure", expected_etag=records["0"].etag)],
        )
        await seconds(58)
        ages = [scene.now() - record.last_modified for record in records.values()]
        await a.stop()
        return ages

    assert max(run_virtual(scenario())) < timedelta(seconds=60)


def test_a_restart_under_the_same_owner_id_moves_no_partition():
    """The new incarnation's member record keeps the old ownerships alive, and it serves them."""

    async def scenario():
        scene = Scene(4)
        a, b = await started(scene, ["a", "b"])
        await seconds(100)
        before = scene.owners()
        scene.store_by_owner["a"].is_out = True
        (restarted,) = await started(scene, ["a"])
        await seconds(5)
        after = scene.owners()
        owned = restarted.statistics().owned
        await stop_all([restarted, b])
        return before, after, owned, a

    before, after, owned, _ = run_virtual(scenario())

    assert after == before
    assert len(owned) == 2


def test_a_stop_hands_over_every_partition_and_deletes_the_member_record():
    """The member that stays owns all partitions and handles every event."""

    async def scenario():
        scene = Scene(6)
        a, b = await started(scene, ["a", "b"])
        await seconds(30)
        for p in range(6):
            scene.publish(2, str(p))
        await a.stop()
        owners, members_left = scene.owners(), set(members(scene))
        await seconds(2)
        await b.stop()
        return owners, members_left, sorted(scene.handled)

    owners, members_left, handled = run_virtual(scenario())

    assert set(owners.values()) == {"b"}
    assert members_left == {"b"}
    assert handled == [(str(p), n) for p in range(6) for n in range(2)]
