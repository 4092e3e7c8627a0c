"""Session leases: what a cycle may skip, and which members are dead after an outage."""

from datetime import timedelta
from typing import Any

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import LeaseMode
from eventproc.models import OwnershipClaim
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene, seconds
from tests.stories.test_session_leases import counting_operations, started, stop_all

GRACE_S = 20.0
"""Two load-balancing intervals after an outage, in which no member is considered dead."""


async def take(scene: Scene, partition_id: str, owner_id: str) -> None:
    """Write another owner into the record."""
    record = scene.account.records(scene.group).ownership_by_partition[partition_id]
    claim = OwnershipClaim(partition_id=partition_id, owner_id=owner_id, expected_etag=record.etag)
    async with MemoryCheckpointStore(scene.account) as store:
        await store.claim_ownership(scene.group, [claim])


def test_after_an_outage_no_member_is_fenced_at_once():
    """No member could renew; one that comes back later than the first keeps its partitions."""

    async def story():
        scene = Scene(4)
        processors = await started(scene, ["a", "b"])
        await seconds(30)
        before = scene.owners()
        for name in ("a", "b"):
            scene.store_by_owner[name].is_out = True
        await seconds(100)
        for name in ("a", "b"):
            scene.store_by_owner[name].is_out = False
            await seconds(GRACE_S / 2 + 2)
        await seconds(60)
        after = scene.owners()
        lost_count = sum(p.statistics().lost_count for p in processors)
        await stop_all(processors)
        return after == before, lost_count

    assert run_virtual(story()) == (True, 0)


def test_a_member_that_stays_silent_after_an_outage_is_fenced_when_the_grace_is_over():
    """By the first poll after the grace: polls during the grace do not count as full polls."""

    async def story():
        scene = Scene(4)
        processors = await started(scene, ["a", "b"])
        await seconds(30)
        for name in ("a", "b"):
            scene.store_by_owner[name].is_out = True
        await seconds(100)
        scene.store_by_owner["a"].is_out = False
        await seconds(GRACE_S - 2)
        within = set(scene.owners().values())
        await seconds(15)
        after = set(scene.owners().values())
        await stop_all(processors)
        return within, after

    assert run_virtual(story()) == ({"a", "b"}, {"a"})


def test_beside_a_foreign_member_every_poll_reads_the_ownership_records():
    """It writes no member record, so only the ownership records show what it takes."""

    async def story():
        scene = Scene(4)
        (a,) = await started(scene, ["a"])
        await seconds(30)
        await take(scene, "0", "foreign")
        await seconds(15)
        with counting_operations() as count:
            await seconds(40)
        await a.stop()
        return count["list_ownership"], count["list_members"]

    whole, looks = run_virtual(story())

    assert whole == looks >= 3


def test_while_a_partition_is_handed_over_every_poll_reads_the_ownership_records():
    """Even if the members are unchanged."""

    async def story():
        scene = Scene(2)
        (a,) = await started(scene, ["a"])
        await seconds(30)
        run: Any = a._run
        counts = []
        for busy in ((), ("0",)):
            with counting_operations() as count:
                await run._balancer.cycle(run.names, busy, ("0", "1"))
            counts.append(count["list_ownership"])
        await a.stop()
        return counts

    assert run_virtual(story()) == [0, 1]


def test_a_leaving_processor_writes_its_status_before_it_plans():
    """Processors that poll after that plan without it, and find the same new owners."""

    async def story():
        scene = Scene(2)
        (a,) = await started(scene, ["a"])
        await seconds(30)
        store: Any = scene.store_by_owner["a"]
        done: list[str] = []

        def noting(name: str) -> Any:
            real = getattr(store, name)

            def call(*arguments: Any) -> Any:
                done.append(name)
                return real(*arguments)

            return call

        for name in ("announce_member", "list_members", "list_ownership"):
            setattr(store, name, noting(name))
        await a.stop()
        return done[:3]

    assert run_virtual(story()) == ["announce_member", "list_members", "list_ownership"]


def test_a_processor_that_expects_no_hand_over_stops_at_once():
    """The group is balanced, so no hand-over to it can be under way."""

    async def story():
        scene = Scene(2)
        (a,) = await started(scene, ["a"])
        await seconds(30)
        before = scene.now()
        await a.stop()
        return scene.now() - before

    assert run_virtual(story()) < timedelta(seconds=1)


def test_a_restarting_processor_renews_once_more_as_it_stops():
    """So its next start has a whole expiration in which its records are alive."""

    async def story():
        scene = Scene(2)
        a = scene.processor(static_membership=True, lease_mode=LeaseMode.PARTITION)
        await a.start()
        await seconds(15)
        await a.stop()
        records = scene.account.records(scene.group).ownership_by_partition
        return [scene.now() - record.last_modified for record in records.values()]

    assert max(run_virtual(story())) < timedelta(seconds=1)
