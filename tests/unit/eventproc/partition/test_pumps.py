"""Which pumps are started and ended when the owned partitions change, and after a failure."""

import asyncio
from datetime import timedelta
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from eventproc import Backoff
from eventproc.config import EventProcessorConfig
from eventproc.logs import get_logger
from eventproc.models import CloseReason, WriteOutcome
from eventproc.partition.pumps import Pumps
from eventproc.statistics import DeliveryCounters
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Noting, Scene, seconds

some = st.frozensets(st.sampled_from("abcdef"))


class StubPump:
    """A pump that drains for a second."""

    is_paused = False

    def __init__(self) -> None:
        self.counters = DeliveryCounters()
        self.is_lost = False
        self._is_draining = asyncio.Event()

    def end(self, _reason, *, within=None) -> None:
        """Begin to drain."""
        self._is_draining.set()

    def lose(self) -> None:
        """Note that the partition is lost."""
        self.is_lost = True

    async def run(self) -> CloseReason:
        """Serve until drained."""
        await self._is_draining.wait()
        await seconds(1)
        return CloseReason.HANDED_OVER


@given(some, some, some)
def test_pumps_are_started_and_ended_until_they_match_the_owned_partitions(before, owned, surplus):
    """A partition that is being handed over gets neither a second pump nor a second end."""

    async def story():
        made: dict[str, StubPump] = {}

        def make(partition_id):
            assert partition_id not in made, "a second pump"
            made[partition_id] = StubPump()
            return made[partition_id]

        async def transfer(_partition_id, _owner_id):
            return WriteOutcome.WON

        pumps = Pumps(
            make,
            transfer,
            config=EventProcessorConfig(),
            changed=lambda: None,
            rng=Random(0),
            log=get_logger("test"),
        )
        pumps.adjust(before, {})
        await seconds(0)
        started = list(made)
        handed_over = dict.fromkeys(sorted(surplus & before))
        pumps.adjust(before, handed_over)
        await seconds(0)
        pumps.adjust(owned, handed_over)
        await seconds(0)
        ended = [p for p, pump in made.items() if pump.is_lost]
        running = pumps.running
        for pump in made.values():
            pump.end(CloseReason.SHUTDOWN)
        await seconds(2)
        return started, list(made)[len(started) :], ended, running

    started, later, ended, running = run_virtual(story())

    assert started == sorted(before)
    assert later == sorted(owned - before)
    assert ended == sorted(before - owned - surplus)
    assert running == before | owned


def test_the_back_off_of_a_pump_begins_anew_after_it_served_its_partition():
    """Failures of long ago say nothing about the next one."""

    async def scenario():
        scene = Scene()
        made_at_s: list[float] = []

        class Failing(Noting):
            def __init__(self):
                super().__init__(scene)
                made_at_s.append(asyncio.get_running_loop().time())
                if len(made_at_s) not in {6, 8}:
                    raise RuntimeError

        backoff = Backoff(initial=timedelta(seconds=2), maximum=timedelta(seconds=1000))
        async with scene.processor(Failing, handler_backoff=backoff) as processor:
            await seconds(120)
            run = processor._run
            assert run is not None
            run.pumps.lose("0")
            await seconds(120)
        return made_at_s

    made_at_s = run_virtual(scenario())
    waits_s = [after - before for before, after in pairwise(made_at_s)]

    assert len(waits_s) == 7
    assert waits_s[4] >= 16
    assert waits_s[6] <= 2.5
