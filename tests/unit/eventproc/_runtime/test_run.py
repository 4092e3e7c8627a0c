"""When a lease is trusted: by which clock, and by which call."""

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds, until
from tests.unit.eventproc._delivery.test_handler_threads import SHORT


@pytest.mark.skipif(sys.platform != "linux", reason="CLOCK_BOOTTIME is Linux's")
async def test_leases_expire_while_the_machine_sleeps(monkeypatch):
    """The others take the partition meanwhile. Only ``CLOCK_BOOTTIME`` counts that time. In real
    time, hence short."""
    slept_s = [0.0]
    clock_of = time.clock_gettime

    def with_sleep(clock: int) -> float:
        return clock_of(clock) + slept_s[0] * (clock == time.CLOCK_BOOTTIME)

    monkeypatch.setattr(time, "clock_gettime", with_sleep)
    setup, contexts = Setup(), []

    class Keeping(Noting):
        async def process_events(self, context, events):
            contexts.append(context)

    setup.publish(1)
    settings = {**SHORT, "ownership_expiration": timedelta(minutes=1)}
    async with setup.processor(lambda: Keeping(setup), **settings):
        await until(lambda: contexts)
        was_owned = contexts[0].is_owned
        setup.store_by_owner["a"].is_out = True
        slept_s[0] = 61.0
        is_owned = contexts[0].is_owned
        setup.store_by_owner["a"].is_out = False

    assert (was_owned, is_owned) == (True, False)


def test_a_call_that_outlives_its_lease_is_not_owned_by_a_later_one():
    """The event loop is blocked, so the call is not cancelled yet, and its thread asks whether the
    partition is still owned. Another processor may have had it between the two leases."""

    async def scenario():
        setup, contexts = Setup(), []

        class Asking(Noting):
            async def process_events(self, context, events):
                contexts.append(context)
                await seconds(1000)

        setup.publish(1)
        async with setup.processor(lambda: Asking(setup)) as processor:
            await seconds(30)
            run: Any = processor._run
            untold: list[Callable[[], object]] = []
            run.executor.call_soon = untold.append  # As while a call blocks the loop.
            run.leases.lose_all()
            await seconds(30)
            is_claimed_again, is_owned = run.leases.remaining_s("0") > 0, contexts[0].is_owned
            del run.executor.call_soon
            for tell in untold:
                tell()
            await seconds(30)
            return is_claimed_again, is_owned, len(contexts), contexts[1].is_owned

    assert run_virtual(scenario()) == (True, False, 2, True)
