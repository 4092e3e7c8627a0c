"""The clock that jumps, and the processes that stand still on it."""

import asyncio
import time
from contextlib import suppress

import pytest

from eventproc.testing.processes import Process, run_processes
from eventproc.testing.virtual_time import (
    DeadlockError,
    LivelockError,
    OverdueError,
    VirtualTimeLoop,
    run_virtual,
)


def test_hours_pass_at_once():
    """Only work takes real time."""

    async def scenario():
        await asyncio.gather(*(asyncio.sleep(3600 * n) for n in range(5)))
        return asyncio.get_running_loop().time()

    begun_s = time.monotonic()

    assert run_virtual(scenario()) == 4 * 3600
    assert time.monotonic() - begun_s < 5


def test_waiting_for_ever_is_reported():
    """A test that would hang fails instead."""

    async def scenario():
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError):
        run_virtual(scenario())


def test_going_round_and_round_is_reported(monkeypatch):
    """No timer can ever be due while somebody is always busy at the same moment."""
    monkeypatch.setattr(VirtualTimeLoop, "turns_max", 1000)

    async def scenario():
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    with pytest.raises(LivelockError, match="1000 turns at 0"):
        run_virtual(scenario())


def test_what_lasts_too_long_is_named():
    """Not waited for: each task with the calls in which it waits."""

    async def poll():
        while True:  # noqa: ASYNC110
            await asyncio.sleep(1)

    async def scenario():
        await poll()

    with pytest.raises(OverdueError, match=r"not over after 100 s.*story:\d+ > .*poll:\d+ > sleep"):
        run_processes(scenario(), within_s=100)


def test_what_does_not_end_when_it_is_cancelled_is_named():
    """A world that is over must leave nothing behind that waits for ever."""

    async def never_end():
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1)

    async def scenario():
        deaf = asyncio.create_task(never_end(), name="deaf")
        # It is left behind on purpose, and asyncio shall not say so.
        deaf._log_destroy_pending = False  # type: ignore[attr-defined]
        await asyncio.sleep(1)

    with pytest.raises(OverdueError, match=r"deaf in .*never_end:\d+ > sleep"):
        run_processes(scenario())


def test_a_paused_process_stands_still_and_catches_up():
    """What came due meanwhile runs when it is resumed, in its order; a killed one never runs."""

    async def scenario():
        seen = []

        async def count(name):
            for number in range(4):
                await asyncio.sleep(1)
                seen.append((name, number, asyncio.get_running_loop().time()))

        paused, killed = Process("paused"), Process("killed")
        task = paused.spawn(count("p"))
        dead = killed.spawn(count("k"))
        await asyncio.sleep(1.5)
        paused.pause()
        killed.kill()
        await asyncio.sleep(10)
        paused.resume()
        killed.resume()
        await task
        left = not dead.done()
        killed.run_out()
        dead.cancel()
        await asyncio.wait([dead])
        return seen, left

    seen, left = run_processes(scenario())

    assert [s for s in seen if s[0] == "k"] == [("k", 0, 1.0)]
    assert [s[2] for s in seen if s[0] == "p"] == [1.0, 11.5, 12.5, 13.5]
    assert left
