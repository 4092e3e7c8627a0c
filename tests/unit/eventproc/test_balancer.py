"""One look at the group: what it counts, and what it leaves alone."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.balancer import Balancer
from eventproc.config import EventProcessorConfig
from eventproc.leases import Leases
from eventproc.logs import get_logger
from eventproc.membership import Member, MemberStatus
from eventproc.models import OwnershipClaim
from eventproc.presence import Presence
from eventproc.testing.virtual_time import run_virtual
from tests.unit.eventproc.scene import Scene, seconds

LOG = get_logger("eventproc.test")


class SlowToList(MemoryCheckpointStore):
    """Takes its time to say who owns what."""

    delay_s = 0.0

    async def list_ownership(self, group):
        """What it says was so when it was asked."""
        found = await super().list_ownership(group)
        await asyncio.sleep(self.delay_s)
        return found


class Table:
    """The balancer of one processor, "me", and a store in which others leave their marks."""

    def __init__(self, partition_count: int) -> None:
        self.scene = Scene()
        self.store = SlowToList(self.scene.account)
        self.partition_ids = [str(number) for number in range(partition_count)]
        self.config = EventProcessorConfig(uses_store_thread=False)
        clock = asyncio.get_running_loop().time
        expiration = self.config.ownership_expiration
        self.presence = Presence(
            self.store,
            self.scene.group,
            Member(owner_id="me", incarnation="1"),
            expiration=expiration,
            reserve_patience=expiration,
            on_declared_dead=lambda: None,
            on_lapsed=lambda: None,
            clock=clock,
            log=LOG,
        )
        self.leases = Leases(
            self.store,
            self.scene.group,
            "me",
            expiration=expiration,
            clock=clock,
            on_lost=lambda _: None,
            log=LOG,
        )
        self.balancer = Balancer(
            self.store,
            self.scene.group,
            "me",
            leases=self.leases,
            presence=self.presence,
            config=self.config,
            clock=clock,
            log=LOG,
        )

    async def sit_down(self) -> None:
        """Come in, and look once: what is seen for the first time is not acted upon."""
        await self.presence.enter(
            answer_within=timedelta(seconds=12), look_every=timedelta(seconds=1)
        )
        await self.look()

    async def look(self, busy=()):
        """Look again, a moment later."""
        await seconds(0.3)
        return await self.balancer.cycle(self.partition_ids, busy, ())

    async def join(self, owner_id: str, status=MemberStatus.ACTIVE) -> None:
        """Somebody else is there."""
        member = Member(owner_id=owner_id, incarnation="2", status=status)
        await self.store.announce_member(self.scene.group, member)

    async def record(self, partition_id: str, owner_id: str) -> None:
        """Write an ownership record in somebody's name."""
        claim = OwnershipClaim(
            partition_id=partition_id,
            owner_id=owner_id,
            expected_etag=self.etags.get(partition_id),
        )
        await self.store.claim_ownership(self.scene.group, [claim])

    @property
    def etags(self) -> dict[str, str]:
        """The version of each record."""
        records = self.scene.account.records(self.scene.group).ownership_by_partition
        return {p: record.etag for p, record in records.items()}


def play(story, partition_count=1) -> None:
    """Run a story on virtual time."""

    async def run() -> None:
        table = Table(partition_count)
        async with table.store:
            await story(table)

    run_virtual(run())


def test_a_look_under_way_claims_nothing_for_who_leaves():
    """It would have to be given away again at once."""

    async def story(table):
        await table.sit_down()
        table.store.delay_s = 1.0
        looking = asyncio.create_task(table.look())
        await seconds(0.8)
        farewell = await table.balancer.farewell(table.partition_ids, ())
        await looking

        assert table.etags == {}
        assert farewell.targets == {}

    play(story)


def test_who_leaves_gets_nothing_any_more():
    """The plan is made without it."""

    async def story(table):
        await table.join("b", MemberStatus.LEAVING)
        await table.sit_down()
        await table.look()

        assert set(table.scene.owners().values()) == {"me"}

    play(story, partition_count=4)


def test_what_is_held_is_not_given_away_because_its_record_is_old():
    """Its renewal is under way, or fails; until somebody takes it, nobody else has it."""

    async def story(table):
        await table.sit_down()
        await table.look()
        for number in range(8):
            await table.join(f"b{number}")
        records = table.scene.account.records(table.scene.group).ownership_by_partition
        record = records["0"]
        records["0"] = replace(record, last_modified=record.last_modified - timedelta(hours=1))
        await table.look()
        done = await table.look()

        assert done.moves.hand_overs == {}
        assert done.moves.owner_by_partition == {"0": "me"}

    play(story)


def test_what_is_being_given_away_is_left_alone():
    """Its lease has ended, and the write that names the new owner is on its way."""

    async def story(table):
        await table.sit_down()
        await table.record("0", "me")
        before = table.etags
        await table.look(busy=["0"])

        assert table.etags == before
        assert (await table.look()).claimed == ("0",)

    play(story)


def test_a_gift_that_was_never_taken_up_is_given_on_at_the_farewell():
    """There is nothing to drain, and nobody else who would do it."""

    async def story(table):
        await table.join("b")
        await table.sit_down()
        await table.record("0", "me")
        await table.balancer.farewell(table.partition_ids, ())

        assert table.scene.owners() == {"0": "b"}

    play(story)


def test_after_a_silence_of_the_store_an_old_record_still_has_its_owner():
    """It could not renew either."""

    async def story(table):
        await table.record("0", "other")
        await table.sit_down()
        await seconds(10 * table.config.ownership_expiration.total_seconds())
        done = [await table.look() for _ in range(3)]

        assert [look.claimed for look in done] == [(), (), ()]
        for _ in range(3):
            await seconds(table.config.load_balancing_interval.total_seconds())
            done.append(await table.look())
        assert done[-1].moves.owner_by_partition == {"0": "me"}

    play(story)


def test_after_a_silence_everybody_has_all_its_time_to_hand_over():
    """Meanwhile a partition may have been here and there, and be with its old owner again."""

    async def story(table):
        await table.join("other")
        for partition_id in table.partition_ids:
            await table.record(partition_id, "other")
        await table.sit_down()
        await table.look()
        await seconds(10 * table.config.ownership_expiration.total_seconds())
        for partition_id in table.partition_ids:
            await table.record(partition_id, "other")
        stolen = [(await table.look()).stolen for _ in range(3)]
        assert stolen == [(), (), ()]
        for partition_id in table.partition_ids:
            await table.record(partition_id, "other")
        while not stolen[-1]:
            await seconds(table.config.load_balancing_interval.total_seconds())
            stolen.append((await table.look()).stolen)
        waited = len(stolen) * table.config.load_balancing_interval
        assert waited > table.config.handoff_timeout

    play(story, partition_count=2)


def test_what_a_handler_may_be_at_work_on_is_not_given_away():
    """Its lease is lost, but the record stands in this processor's name."""

    async def story(table):
        await table.sit_down()
        for partition_id in table.partition_ids:
            await table.record(partition_id, "me")
        before = table.etags
        await table.balancer.farewell(table.partition_ids, {"0"})

        assert table.etags["0"] == before["0"]
        assert table.etags["1"] != before["1"]

    play(story, partition_count=2)
