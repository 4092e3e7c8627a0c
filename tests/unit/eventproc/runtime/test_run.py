"""The clock of the leases. In real time, hence short."""

import sys
import time
from datetime import timedelta

import pytest

from tests.stories.scene import Noting, Scene, until
from tests.unit.eventproc.partition.test_handler_threads import SHORT


@pytest.mark.skipif(sys.platform != "linux", reason="CLOCK_BOOTTIME is Linux's")
async def test_leases_expire_while_the_machine_sleeps(monkeypatch):
    """The others take the partition meanwhile. Only ``CLOCK_BOOTTIME`` counts that time."""
    slept_s = [0.0]
    clock_of = time.clock_gettime

    def with_sleep(clock: int) -> float:
        return clock_of(clock) + slept_s[0] * (clock == time.CLOCK_BOOTTIME)

    monkeypatch.setattr(time, "clock_gettime", with_sleep)
    scene, contexts = Scene(), []

    class Keeping(Noting):
        async def process_events(self, context, events):
            contexts.append(context)

    scene.publish(1)
    settings = {**SHORT, "ownership_expiration": timedelta(minutes=1)}
    async with scene.processor(lambda: Keeping(scene), **settings):
        await until(lambda: contexts)
        was_owned = contexts[0].is_owned
        scene.store_by_owner["a"].is_out = True
        slept_s[0] = 61.0
        is_owned = contexts[0].is_owned
        scene.store_by_owner["a"].is_out = False

    assert (was_owned, is_owned) == (True, False)
