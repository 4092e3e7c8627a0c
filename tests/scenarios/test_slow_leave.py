"""Leaving a group while the store is slow: what fits into ``shutdown_timeout``."""

import asyncio
from contextlib import suppress
from datetime import timedelta

import pytest

from eventproc import PartitionHandler
from eventproc.models import ClaimResult, WriteOutcome
from eventproc.testing import StoreFaults
from tests.scenarios.group_setup import Setup, seconds

SHUTDOWN_S = 20.0
SLOW_S = SHUTDOWN_S / 20
"""The longest duration of a request with which a leave is promised to leave no record."""


class EndingAt(PartitionHandler):
    """Its calls end at a given time, also when they are cancelled; then its events are done."""

    def __init__(self, until):
        self.until = until

    async def process_events(self, context, events):
        """Wait until that time."""
        loop = asyncio.get_running_loop()
        while (left_s := self.until() - loop.time()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(left_s)
        context.done(events[-1])


async def slow_group(setup, handler=None, **settings):
    """Start processors "a", whose requests are slow, and "b"; return both."""
    settings["shutdown_timeout"] = timedelta(seconds=SHUTDOWN_S)
    a = setup.processor(handler, owner_id="a", **settings)
    b = setup.processor(owner_id="b", **settings)
    await asyncio.gather(a.start(), b.start())
    await seconds(15)
    slow = timedelta(seconds=SLOW_S)
    setup.store_by_owner["a"].faults = StoreFaults(delay_min=slow, delay_max=slow)
    await seconds(15)
    return a, b


def owned_by(setup, owner_id):
    """The partition of a processor."""
    (partition_id,) = [p for p, owner in setup.owners().items() if owner == owner_id]
    return partition_id


async def test_a_leave_that_ends_at_the_last_moment_deletes_the_member_record():
    """The last call, its checkpoint and the hand-over take nearly all of the time."""
    setup = Setup(2)
    until_s = float("inf")
    a, b = await slow_group(setup, lambda: EndingAt(lambda: until_s))
    mine = owned_by(setup, "a")
    setup.publish(1, mine)
    await seconds(1)
    until_s = asyncio.get_running_loop().time() + 0.79 * SHUTDOWN_S
    await a.stop()
    records = setup.account.records(setup.group)
    left = set(setup.owners().values()), set(records.member_by_owner), setup.checkpointed(mine)
    await b.stop()

    assert left == ({"b"}, {"b"}, 0)


async def test_the_drain_delay_begins_when_the_announcement_was_answered():
    """What the others read from then on shows it, so the reads of this one need not come first."""
    announcement, cycle, hand_over = 1, 2, 0.5  # The store has a request after half of its time.
    setup = Setup(2)
    delay_s = 5.0
    a, b = await slow_group(setup, drain_delay=timedelta(seconds=delay_s))
    mine = owned_by(setup, "a")
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    stopping = asyncio.create_task(a.stop())
    while setup.owners()[mine] == "a":
        await seconds(0.01)
    took_s = loop.time() - begun_s
    await stopping
    await b.stop()

    assert abs((took_s - delay_s) / SLOW_S - (announcement + cycle + hand_over)) < 0.1


async def test_a_stop_returns_in_time_although_a_partition_cannot_be_released(monkeypatch):
    """It waits between its attempts, and not beyond ``shutdown_timeout``."""
    setup = Setup(1)
    a = setup.processor(
        shutdown_timeout=timedelta(seconds=SHUTDOWN_S),
        rebalance_interval=timedelta(seconds=0.3 * SHUTDOWN_S),
        load_balancing_interval=timedelta(seconds=0.3 * SHUTDOWN_S),
    )
    await a.start()
    await seconds(30)

    async def without_answer(group, claims):
        return [ClaimResult(claim=c, outcome=WriteOutcome.UNKNOWN) for c in claims]

    monkeypatch.setattr(setup.store_by_owner["a"], "claim_ownership", without_answer)
    begun_s = asyncio.get_running_loop().time()
    await a.stop()

    assert setup.owners() == {"0": "a"}
    assert 0.9 * SHUTDOWN_S < (asyncio.get_running_loop().time() - begun_s) <= SHUTDOWN_S + 0.01


class Slow(PartitionHandler):
    """Its calls take a given time; notes the events of the calls that ended."""

    def __init__(self, setup, call_s):
        self.setup = setup
        self.call_s = call_s

    async def process_events(self, context, events):
        """Take that time."""
        await asyncio.sleep(self.call_s)
        self.setup.handled += [(context.partition_id, e.sequence_number) for e in events]


@pytest.mark.parametrize("processor_count", [1, 2])
@pytest.mark.parametrize("begun_s", [-0.1, 3.0, 6.0, 6.6])
async def test_a_stop_cancels_no_call_that_takes_a_third_of_its_time(
    processor_count, begun_s, caplog
):
    """Also one that began while the processor still served, so that others notice the leave."""
    setup = Setup(2)
    names = "ab"[:processor_count]
    processors = [
        setup.processor(
            lambda: Slow(setup, SHUTDOWN_S / 3),
            owner_id=name,
            shutdown_timeout=timedelta(seconds=SHUTDOWN_S),
        )
        for name in names
    ]
    await asyncio.gather(*(processor.start() for processor in processors))
    await seconds(30)

    async def stop():
        await seconds(1)
        await processors[0].stop()

    stopping = asyncio.create_task(stop())
    await seconds(1 + begun_s)
    setup.publish(1, "0")
    setup.publish(1, "1")
    await stopping
    for processor in processors[1:]:
        await seconds(30)
        await processor.stop()

    if processor_count == 2 or begun_s < 0:
        assert sorted(setup.handled) == [("0", 0), ("1", 0)]
    assert not [r for r in caplog.records if vars(r).get("event") == "handler_cancelled"]
