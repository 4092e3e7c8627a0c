"""A run: its clock of leases, and what it has opened is closed within a time limit."""

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from eventproc._base.logs import get_logger
from eventproc._runtime.run import CLOSE_MIN_S, CloseStack
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds, until
from tests.unit.eventproc._delivery.test_handler_threads import SHORT


@pytest.mark.skipif(sys.platform != "linux", reason="CLOCK_BOOTTIME is Linux's")
@pytest.mark.real_time
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


async def test_a_partition_that_is_new_is_claimed_as_soon_as_it_is_seen():
    """No processor waits for its next cycle."""
    setup, often = Setup(1), timedelta(seconds=1)
    async with setup.processor(partition_ids_interval=often) as processor:
        await seconds(100)
        cycles = processor.statistics().cycle_count
        while processor.statistics().cycle_count == cycles:
            await seconds(0.1)
        setup.hub.grow(2)
        await seconds(2)
        owned = processor.statistics().owned

    assert owned == ("0", "1")


LOG = get_logger("eventproc.processor")


class SlowParts:
    """Adds parts that take time to close, and records when each was closed."""

    def __init__(self):
        self.stack = CloseStack(LOG)
        self.closed = []

    def push(self, name, takes_s=0.0, error=None):
        """Add a part. With ``takes_s=None`` it never closes."""

        async def close():
            await (asyncio.Event().wait() if takes_s is None else asyncio.sleep(takes_s))
            if error is not None:
                raise error
            self.closed.append((name, asyncio.get_running_loop().time()))

        self.stack.push(name, close)


def warned(caplog):
    """Return the parts that were left open, in order."""
    return [
        vars(record)["part"]
        for record in caplog.records
        if vars(record).get("event") == "close_timed_out"
    ]


async def test_parts_are_closed_in_reverse_order(caplog):
    """The part that was opened last may still use the others."""
    parts = SlowParts()
    for name in "abc":
        parts.push(name, 1)
    await parts.stack.close(10)

    assert parts.closed == [("c", 1), ("b", 2), ("a", 3)]
    assert warned(caplog) == []


async def test_a_part_that_does_not_close_in_time_is_logged_and_left_open(caplog):
    """Each part below it still gets a moment, so that a quick one is closed."""
    caplog.set_level(logging.WARNING, "eventproc")

    parts = SlowParts()
    parts.push("quick", CLOSE_MIN_S / 2)
    parts.push("hanging", None)
    parts.push("slow", 4)
    await parts.stack.close(10)

    assert parts.closed == [("slow", 4), ("quick", pytest.approx(10 + CLOSE_MIN_S / 2))]
    assert warned(caplog) == ["hanging"]


async def test_several_hanging_parts_share_the_limit(caplog):
    """Together they take no longer than the limit, and a moment for each."""
    parts = SlowParts()
    for name in "abc":
        parts.push(name, None)
    await parts.stack.close(10)

    assert asyncio.get_running_loop().time() == pytest.approx(10 + 2 * CLOSE_MIN_S)
    assert warned(caplog) == ["c", "b", "a"]


async def test_an_error_is_raised_after_everything_was_closed(caplog):
    """Also a ``TimeoutError`` of a part itself."""
    parts = SlowParts()
    parts.push("a")
    parts.push("b", error=TimeoutError("of its own"))
    with pytest.raises(TimeoutError, match="of its own"):
        await parts.stack.close(10)

    assert [name for name, _ in parts.closed] == ["a"]
    assert warned(caplog) == []
