"""Virtual time, and processes that may be paused on it."""

import asyncio
import time
from contextlib import suppress
from contextvars import Context, ContextVar

import pytest

from eventproc.testing._processes import Process, run_processes
from eventproc.testing._virtual_time import (
    DeadlockError,
    LivelockError,
    OverdueError,
    VirtualTimeLoop,
    run_virtual,
)


def test_sleeping_on_virtual_time_takes_no_real_time():
    """Only work does."""

    async def scenario():
        await asyncio.gather(*(asyncio.sleep(3600 * n) for n in range(5)))
        return asyncio.get_running_loop().time()

    began_s = time.monotonic()

    assert run_virtual(scenario()) == 4 * 3600
    assert time.monotonic() - began_s < 5


def test_waiting_for_ever_raises_deadlock_error():
    """A test that would hang fails instead."""

    async def scenario():
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError):
        run_virtual(scenario())


def test_turning_without_time_passing_raises_livelock_error(monkeypatch):
    """No timer can become due while a task is ready in every turn."""
    monkeypatch.setattr(VirtualTimeLoop, "turns_max", 1000)

    async def scenario():
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    with pytest.raises(LivelockError, match="1000 turns at 0"):
        run_virtual(scenario())


def test_tasks_that_last_too_long_are_listed():
    """Each with the calls in which it waits."""

    async def poll():
        while True:  # noqa: ASYNC110
            await asyncio.sleep(1)

    async def scenario():
        await poll()

    with pytest.raises(
        OverdueError, match=r"not over after 100 s.*scenario:\d+ > .*poll:\d+ > sleep"
    ):
        run_processes(scenario(), within_s=100)


def test_a_task_that_ignores_its_cancellation_is_listed():
    """Nothing may be left waiting when the processes have ended."""

    async def never_end():
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1)

    async def scenario():
        never_ending = asyncio.create_task(never_end(), name="never ending")
        # It is left behind on purpose, so asyncio must not report it.
        never_ending._log_destroy_pending = False  # type: ignore[attr-defined]
        await asyncio.sleep(1)

    with pytest.raises(OverdueError, match=r"never ending in .*never_end:\d+ > sleep"):
        run_processes(scenario())


def test_a_resumed_process_runs_what_became_due_while_it_was_paused():
    """In order. A killed process never runs again."""

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
        is_pending = not dead.done()
        killed.run_out()
        dead.cancel()
        await asyncio.wait([dead])
        return seen, is_pending

    seen, is_pending = run_processes(scenario())

    assert [s for s in seen if s[0] == "k"] == [("k", 0, 1.0)]
    assert [s[2] for s in seen if s[0] == "p"] == [1.0, 11.5, 12.5, 13.5]
    assert is_pending


def test_a_group_of_tasks_is_cancelled_in_the_order_of_its_creation():
    """The order repeats in every run; asyncio alone would follow the addresses of the tasks."""
    ended = []

    async def member(name):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(name)

    async def scenario():
        async with asyncio.timeout(1), asyncio.TaskGroup() as group:
            held = []
            for name in range(40):
                group.create_task(member(name))
                held.append(bytearray(name * 97 % 400))  # So that addresses do not follow in order.

    with suppress(TimeoutError):
        run_virtual(scenario())

    assert ended == list(range(40))


@pytest.mark.parametrize("run", [run_virtual, run_processes])
def test_a_call_runs_in_the_context_that_it_was_given_even_in_an_empty_one(run):
    """An empty context is false as a condition, but it is not the caller's."""
    variable = ContextVar("variable", default="unset")

    async def scenario():
        variable.set("the caller's")
        loop, found = asyncio.get_running_loop(), []
        loop.call_soon(lambda: found.append(variable.get()), context=Context())
        loop.call_later(1, lambda: found.append(variable.get()), context=Context())
        await asyncio.sleep(2)
        return found

    assert run(scenario()) == ["unset", "unset"]
