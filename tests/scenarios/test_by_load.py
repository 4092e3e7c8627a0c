"""``Published(ByLoad())``: the figures that are promised, with whole processors on virtual time."""

import asyncio
from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from eventproc import ByLoad, EventProcessorConfig, PartitionHandler, Published
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds, stop_all
from tests.scenarios.test_published import counting

BY_LOAD = Published(ByLoad())
PROCESSORS = 8
PARTITIONS = 64
EVERY_S = 20.0
"""Each partition gets one event in so many seconds."""

ZIPF = [1 / (number + 1) ** 1.1 for number in range(PARTITIONS)]


class Working(PartitionHandler):
    """Is busy for as long as the partition's load says."""

    def __init__(self, setup) -> None:
        self.setup = setup

    async def process_events(self, context, events):
        """Sleep for each event."""
        for _ in events:
            share = self.setup.share_of(context.partition_id, context.owner_id)
            await asyncio.sleep(share * EVERY_S)


class Busy(Setup):
    """Partitions with loads, and how busy each processor was."""

    def __init__(self, shares, *, swing_s=None) -> None:
        super().__init__(len(shares))
        self.shares = shares
        self.swing_s = swing_s

    def share_of(self, partition_id, owner_id):
        """Return the part of the time for which the partition keeps its owner busy.

        A swing is in step for all partitions of an owner: the worst that can be.
        """
        now_s = asyncio.get_running_loop().time()
        if self.swing_s is None:
            return self.shares[int(partition_id)]
        is_up = int(now_s / self.swing_s) % 2 == int(owner_id[1:]) % 2
        return 2 * self.shares[int(partition_id)] if is_up else 0.0

    async def feed(self):
        """Publish one event to each partition, again and again."""
        while True:
            for number in range(len(self.shares)):
                self.publish(1, str(number))
            await asyncio.sleep(EVERY_S)

    def load_by_owner(self):
        """Return the load that each owner has by its partitions."""
        load: Counter[str] = Counter()
        for partition_id, owner in self.owners().items():
            load[owner or ""] += self.shares[int(partition_id)]
        return load

    @property
    def excess(self):
        """The load of the busiest, in units of the larger of the mean and the heaviest."""
        load = self.load_by_owner()
        return max(load.values()) / max(sum(load.values()) / PROCESSORS, *self.shares)


class Sized(Busy):
    """Partitions with many small events or a few large ones, which take their handlers no time."""

    def __init__(self, by) -> None:
        self.events = [max(1, round(40 * load)) for load in ZIPF]
        self.bytes = [40_000 * load for load in ZIPF]
        Random(209).shuffle(self.events)
        Random(56).shuffle(self.bytes)
        super().__init__(getattr(self, by))

    def share_of(self, partition_id, owner_id):
        """Return 0: no partition keeps its owner busy."""
        return 0.0

    async def feed(self):
        """Publish the same events to each partition, again and again."""
        while True:
            for number, count in enumerate(self.events):
                body = b"x" * round(self.bytes[number] / count)
                for _ in range(count):
                    self.hub.publish(body, partition_id=str(number))
            await asyncio.sleep(EVERY_S)


async def run_group(setup, *, minutes, placement=BY_LOAD):
    """Run a group; return the owners and the excess after each minute."""
    processors = [
        setup.processor(lambda: Working(setup), f"p{n}", placement=placement)
        for n in range(PROCESSORS)
    ]
    await asyncio.gather(*(processor.start() for processor in processors))
    feeding = asyncio.create_task(setup.feed())
    history = []
    for _ in range(minutes):
        await seconds(60)
        history.append((setup.owners(), setup.excess))
    feeding.cancel()
    await stop_all(processors)
    return history


def moves(history):
    """Return how many partitions changed owners between two minutes of a history."""
    return sum(
        before[p] != after[p] for (before, _), (after, _) in pairwise(history) for p in before
    )


@pytest.mark.parametrize("draw", [209, pytest.param(56, marks=pytest.mark.night)])
def test_uneven_loads_are_shared_within_ten_minutes(draw):
    """The busiest is at most 1.2 times its share, and then at most two partitions move an hour and
    processor."""
    shares = [0.5 * load for load in ZIPF]
    Random(draw).shuffle(shares)

    history = run_virtual(run_group(Busy(shares), minutes=45))

    assert max(excess for _, excess in history[10:]) <= 1.2
    assert moves(history[10:]) <= 2 * PROCESSORS
    assert history[3][1] > 1.2


@pytest.mark.parametrize(("by", "other"), [("events", "bytes"), ("bytes", "events")])
def test_shares_follow_what_is_measured(by, other):
    """By events or by bytes: within ten minutes that measure is even, and the other one is not."""
    setup = Sized(by)
    history = run_virtual(run_group(setup, minutes=25, placement=Published(ByLoad(by=by))))
    setup.shares = getattr(setup, other)

    assert max(excess for _, excess in history[10:]) <= 1.2 < history[3][1]
    assert setup.excess > 1.2


def test_events_that_take_no_time_move_nothing_by_busy_time():
    """However many there are in some of the partitions."""
    history = run_virtual(run_group(Sized("events"), minutes=20))

    assert moves(history[1:]) == 0


def test_an_even_load_moves_nothing():
    """Not one partition more than with Even."""
    history = run_virtual(run_group(Busy([0.02] * PARTITIONS), minutes=20))

    assert moves(history[1:]) == 0
    assert {*Counter(history[-1][0].values()).values()} == {PARTITIONS // PROCESSORS}


@pytest.mark.parametrize("swing_s", [20, 60])
def test_a_load_that_swings_every_minute_moves_nothing(swing_s):
    """Half of the processors are busy, then the other half."""
    history = run_virtual(run_group(Busy([0.02] * PARTITIONS, swing_s=swing_s), minutes=20))

    assert moves(history[1:]) == 0


async def test_a_processor_writes_its_load_with_a_third_of_the_expiration_at_most():
    """Otherwise a balanced group writes no member records."""
    setup = Busy([0.02] * PARTITIONS)
    with counting(["announce_member"]) as count:
        await run_group(setup, minutes=20)

    expirations = 20 * 60 / EventProcessorConfig().ownership_expiration.total_seconds()

    assert PROCESSORS * 20 < count["announce_member"] <= PROCESSORS * (3 * expirations + 4)
