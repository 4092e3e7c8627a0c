"""Leaving a group: hand-overs, the drain delay, and a new processor with the same owner id."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from eventproc import BatchError, DuplicateOwnerError, PartitionHandler
from eventproc._base.logs import get_logger
from eventproc._base.retries import Backoff
from eventproc._group.pumps.pumps import Pumps
from eventproc.errors import StoreUnavailableError
from eventproc.models import (
    ClaimResult,
    CloseReason,
    LoadBalancingStrategy,
    MemberStatus,
    OwnershipClaim,
    WriteOutcome,
)
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds


class StubPump:
    """A pump whose drain ends when the test says so."""

    is_lost = False

    def __init__(self, drained):
        self._ended = asyncio.Event()
        self._drained = drained

    def end(self, reason, *, within=None):
        """Begin to drain."""
        self._ended.set()

    def follow(self, pause):
        """Nothing is paused."""

    async def run(self):
        """Serve until ended and drained."""
        await self._ended.wait()
        await self._drained.wait()
        return CloseReason.HANDED_OVER


class PumpsFixture:
    """Pumps whose transfers wait until the test allows them."""

    def __init__(self):
        self.made = 0
        self.transfers = []
        self.drained, self.transfer_allowed = asyncio.Event(), asyncio.Event()
        self.pumps = Pumps(
            self._make,
            self._transfer,
            backoff=Backoff(),
            changed=lambda: None,
            rng=Random(0),
            log=get_logger("test"),
        )

    def _make(self, _, *, is_forced):
        self.made += 1
        return StubPump(self.drained)

    async def _transfer(self, partition_id, owner_id):
        self.transfers.append((partition_id, owner_id))
        await self.transfer_allowed.wait()
        return WriteOutcome.WON


async def test_a_partition_that_is_being_handed_over_gets_no_second_pump():
    """Even if the plan changes: the write that names the new owner is under way."""
    fixture = PumpsFixture()
    fixture.pumps.adjust({"0"}, {})
    await seconds(0)
    fixture.pumps.adjust({"0"}, {"0": "b"})
    fixture.drained.set()
    await seconds(1)
    fixture.pumps.adjust({"0"}, {})
    await seconds(1)
    during_hand_over = fixture.made
    fixture.transfer_allowed.set()
    await seconds(1)
    fixture.pumps.adjust({"0"}, {})
    await seconds(1)

    assert (during_hand_over, fixture.made) == (1, 2)


def test_the_new_owner_is_read_again_after_draining():
    """The plan may name another owner by then, or none."""

    async def scenario(later):
        fixture = PumpsFixture()
        fixture.pumps.adjust({"0"}, {})
        await seconds(0)
        fixture.pumps.adjust({"0"}, {"0": "b"})
        await seconds(1)
        fixture.pumps.adjust({"0"}, later)
        fixture.drained.set()
        fixture.transfer_allowed.set()
        await seconds(1)
        return fixture.transfers

    assert run_virtual(scenario({"0": "c"})) == [("0", "c")]
    assert run_virtual(scenario({})) == []


class RecordingTimes(PartitionHandler):
    """Records when it gets events."""

    def __init__(self, times):
        self.times = times

    async def process_events(self, context, events):
        """Record the time."""
        self.times.append(asyncio.get_running_loop().time())


async def test_a_leaving_processor_serves_its_partitions_until_the_others_poll_often():
    """So no partition goes without an owner for longer than a short poll interval."""
    setup = Setup(2)
    times: list[float] = []
    a = setup.processor(lambda: RecordingTimes(times), owner_id="a")
    b = setup.processor(lambda: RecordingTimes(times), owner_id="b")
    await asyncio.gather(a.start(), b.start())
    await seconds(15)
    mine = next(p for p, owner in setup.owners().items() if owner == "a")
    times.clear()
    stopping = asyncio.create_task(a.stop())
    for _ in range(400):
        setup.publish(1, mine)
        await seconds(0.1)
    await stopping
    await b.stop()

    assert max(after - before for before, after in pairwise(times)) < 1


@pytest.mark.parametrize(
    ("drain_delay_s", "rebalance_s", "is_alone"), [(60, 0.25, False), (None, 10, True)]
)
async def test_no_wait_of_a_leaving_processor_takes_more_than_half_of_its_time(
    drain_delay_s, rebalance_s, is_alone
):
    """It would be killed before it hands its partitions over."""
    setup = Setup(2)
    settings: dict[str, Any] = {
        "drain_delay": None if drain_delay_s is None else timedelta(seconds=drain_delay_s),
        "rebalance_interval": timedelta(seconds=rebalance_s),
        "shutdown_timeout": timedelta(seconds=10),
    }
    a, b = (setup.processor(owner_id=name, **settings) for name in "ab")
    await a.start()
    if not is_alone:
        await b.start()
        await seconds(15)
    began_s = asyncio.get_running_loop().time()
    await a.stop()
    took_s = asyncio.get_running_loop().time() - began_s
    await b.stop()

    assert 4 < took_s < 10


class SlowToClose(PartitionHandler):
    """Takes a moment to close."""

    async def process_events(self, context, events):
        """Handle all events."""

    async def close(self, context, reason):
        """Take a moment."""
        await asyncio.sleep(0.1)


def test_a_processor_that_leaves_before_a_hand_over_arrives_returns_the_partition():
    """It was planned to get a partition, so it waits for a hand-over under way."""

    async def hand_over_at():
        setup = Setup(2)
        a = setup.processor(SlowToClose, owner_id="a")
        await a.start()
        await seconds(25)
        b = setup.processor(SlowToClose, owner_id="b")
        await b.start()
        while "b" not in setup.owners().values():
            await seconds(0.01)
        at_s = asyncio.get_running_loop().time()
        await asyncio.gather(a.stop(), b.stop())
        return at_s

    async def scenario(leaves_at_s):
        setup = Setup(2)
        a = setup.processor(SlowToClose, owner_id="a")
        await a.start()
        await seconds(25)
        b = setup.processor(SlowToClose, owner_id="b")
        await b.start()
        await seconds(leaves_at_s - asyncio.get_running_loop().time())
        await b.stop()
        await seconds(1)
        owners = set(setup.owners().values())
        await a.stop()
        return owners

    given_at_s = run_virtual(hand_over_at())
    for before_s in (0.09, 0.07, 0.05, 0.02):
        assert run_virtual(scenario(given_at_s - before_s)) == {"a"}


def test_an_idle_processor_that_leaves_just_after_another_one_returns_the_partition():
    """That one had planned to hand over to it, and neither had read that both leave."""

    async def group():
        setup = Setup(2)
        soon = timedelta(seconds=0.2)
        a, b, c = (setup.processor(SlowToClose, owner_id=name, drain_delay=soon) for name in "abc")
        for processor in (a, b, c):
            await processor.start()
            await seconds(25)
        assert set(setup.owners().values()) == {"a", "b"}
        return setup, a, b, c, asyncio.create_task(b.stop())

    async def hand_over_at():
        setup, a, _, c, stopping = await group()
        while "c" not in setup.owners().values():
            await seconds(0.01)
        at_s = asyncio.get_running_loop().time()
        await asyncio.gather(a.stop(), c.stop(), stopping)
        return at_s

    async def scenario(leaves_at_s):
        setup, a, _, c, stopping = await group()
        await seconds(leaves_at_s - asyncio.get_running_loop().time())
        await asyncio.gather(c.stop(), stopping)
        await seconds(2)
        owners = set(setup.owners().values())
        await a.stop()
        return owners

    given_at_s = run_virtual(hand_over_at())
    for before_s in (0.09, 0.07, 0.05, 0.02):
        assert run_virtual(scenario(given_at_s - before_s)) == {"a"}


class SlowerToClose(PartitionHandler):
    """Takes longer to close the higher the number of the partition is."""

    async def process_events(self, context, events):
        """Handle all events."""

    async def close(self, context, reason):
        """Take longer the higher the number of the partition is."""
        await asyncio.sleep(0.5 + int(context.partition_id))


async def test_a_partition_handed_to_a_leaving_processor_at_the_end_is_released():
    """No partition stays recorded as its own after it has stopped."""
    setup = Setup(2)
    a = setup.processor(SlowerToClose, owner_id="a")
    await a.start()
    await seconds(5)
    stopping = asyncio.create_task(a.stop())
    while None not in setup.owners().values():
        await seconds(0.01)
    store = setup.store_by_owner["a"]
    given = [p for p, owner_id in setup.owners().items() if owner_id is None]
    records = setup.account.records(setup.group)
    await store.claim_ownership(
        setup.group,
        [
            OwnershipClaim(
                partition_id=p,
                owner_id="a",
                expected_etag=records.ownership_by_partition[p].etag,
            )
            for p in given
        ],
    )
    await stopping

    assert given
    assert set(setup.owners().values()) == {None}
    assert not set(records.member_by_owner)


class Lasting(PartitionHandler):
    """Works for longer than a new processor with the same owner id waits for an answer."""

    async def process_events(self, context, events):
        """Work for a long time."""
        await asyncio.sleep(20)


async def test_a_leaving_processor_does_not_release_partitions_of_a_new_one_with_its_id():
    """A supervisor started the next process before this one had ended."""
    setup = Setup(2)
    old = setup.processor(Lasting, owner_id="a", shutdown_timeout=timedelta(seconds=30))
    await old.start()
    await seconds(5)
    setup.publish(1)
    await seconds(1)
    stopping = asyncio.create_task(old.stop())
    await seconds(1)
    new = setup.processor(owner_id="a", chance="another incarnation")
    await new.start()
    was_there = not stopping.done()
    await stopping
    await seconds(20)
    lost_count, owned = new.statistics().lost_count, new.statistics().owned
    await new.stop()

    assert (was_there, lost_count, owned) == (True, 0, ("0", "1"))


class IgnoringCancellation(SlowToClose):
    """Ignores cancellation for a long time."""

    async def process_events(self, context, events):
        """Wait, and go on waiting after a cancellation."""
        until_s = asyncio.get_running_loop().time() + 40
        while (left_s := until_s - asyncio.get_running_loop().time()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(left_s)


@pytest.mark.parametrize("strategy", list(LoadBalancingStrategy))
async def test_a_processor_that_stops_with_a_handler_running_stays_recorded_as_leaving(strategy):
    """So other members wait before they steal, while its handler may still run."""
    setup = Setup(1)
    settings = {
        "shutdown_timeout": timedelta(seconds=5),
        "load_balancing_strategy": strategy,
        "handoff_timeout": timedelta(seconds=30),
    }
    a = setup.processor(IgnoringCancellation, owner_id="a", **settings)
    await a.start()
    await seconds(5)
    b = setup.processor(owner_id="b", **settings)
    await b.start()
    await seconds(15)
    setup.publish(1)
    await seconds(1)
    await a.stop()
    stopped_at_s = asyncio.get_running_loop().time()
    status = setup.account.records(setup.group).member_by_owner["a"].status
    while setup.owners()["0"] != "b":
        await seconds(0.5)
    took_s = asyncio.get_running_loop().time() - stopped_at_s
    await b.stop()
    await seconds(40)

    assert status is MemberStatus.LEAVING
    assert took_s > 20


async def test_a_processor_that_lost_its_owner_id_writes_no_record():
    """The records belong to the processor that has the owner id now."""
    setup = Setup(3)
    old = setup.processor(owner_id="a")
    await old.start()
    await seconds(5)
    line = setup.store_by_owner["a"]
    line.is_out = True
    await seconds(61)
    new = setup.processor(owner_id="a", chance="another incarnation")
    await new.start()
    await seconds(5)
    line.is_out = False
    await seconds(30)
    with pytest.raises(DuplicateOwnerError):
        await old.stop()
    await seconds(5)
    lost_count, owned = new.statistics().lost_count, new.statistics().owned
    await new.stop()

    assert (lost_count, owned) == (0, ("0", "1", "2"))


async def test_a_stolen_link_makes_the_processor_verify_its_lease():
    """So it notices a stolen partition before its next poll."""
    setup = Setup(1)
    a = setup.processor(owner_id="a")
    await a.start()
    await seconds(12)
    store = setup.store_by_owner["a"].store
    record = setup.account.records(setup.group).ownership_by_partition["0"]
    await store.claim_ownership(
        setup.group,
        [OwnershipClaim(partition_id="0", owner_id="thief", expected_etag=record.etag)],
    )
    setup.hub.displace("0", group=setup.group.name)
    await seconds(0.5)
    lost_count = a.statistics().lost_count
    await a.stop()

    assert lost_count == 1


async def test_a_member_record_stays_if_the_store_does_not_say_what_is_recorded():
    """A partition may be recorded as this processor's: the others wait before they steal it."""
    setup = Setup(2)
    a = setup.processor(owner_id="a", shutdown_timeout=timedelta(seconds=20))
    await a.start()
    await seconds(10)
    store: Any = setup.store_by_owner["a"]

    async def unanswered(*_):
        raise StoreUnavailableError("no answer")

    async def unknown(_, claims):
        return [ClaimResult(claim=claim, outcome=WriteOutcome.UNKNOWN) for claim in claims]

    store.list_ownership, store.claim_ownership = unanswered, unknown
    await a.stop()
    members = setup.account.records(setup.group).member_by_owner

    assert setup.owners() == {"0": "a", "1": "a"}
    assert ({owner_id: member.status for owner_id, member in members.items()}) == {
        "a": MemberStatus.LEAVING
    }


async def test_a_leaving_processor_writes_its_status_before_it_plans():
    """Processors that poll after that plan without it, and find the same new owners."""
    setup = Setup(2)
    a = setup.processor()
    await a.start()
    await seconds(30)
    store: Any = setup.store_by_owner["a"]
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

    assert done[:3] == ["announce_member", "list_members", "list_ownership"]


async def test_a_processor_that_expects_no_hand_over_stops_at_once():
    """The group is balanced, so no hand-over to it can be under way."""
    setup = Setup(2)
    a = setup.processor()
    await a.start()
    await seconds(30)
    before = setup.now()
    await a.stop()

    assert setup.now() - before < timedelta(seconds=1)


async def test_a_restarting_processor_renews_once_more_as_it_stops():
    """So its next start has a whole expiration in which its records are alive."""
    setup = Setup(2)
    a = setup.processor(static_membership=True)
    await a.start()
    await seconds(15)
    await a.stop()
    records = setup.account.records(setup.group).ownership_by_partition

    assert max([setup.now() - record.last_modified for record in records.values()]) < timedelta(
        seconds=1
    )


class NamingOne(Noting):
    """Takes two seconds for its events; at the processor "a", event 3 has failed."""

    async def process_events(self, context, events):
        """Handle all but that one."""
        await asyncio.sleep(2)
        await super().process_events(context, events)
        failed = [event for event in events if event.sequence_number == 3]
        if failed and context.owner_id == "a":
            raise BatchError([(failed[0], ValueError("odd"))])


async def test_the_last_call_before_a_stop_may_name_the_events_that_failed(caplog):
    """Those it handled are not delivered again, and the log says what failed."""
    setup = Setup()
    a, b = (setup.processor(lambda: NamingOne(setup), owner_id=name) for name in "ab")
    await a.start()
    await seconds(30)
    setup.publish(10)
    await seconds(0.5)
    await a.stop()
    async with b:
        await seconds(30)

    assert setup.numbers() == [*range(10), 3]
    assert "handler_failed" in caplog.text
