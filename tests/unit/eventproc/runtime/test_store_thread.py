"""What passes between the two sides of a processor."""

import asyncio
import gc
from typing import cast

import pytest

from eventproc.errors import StoreUnavailableError
from eventproc.runtime.store_thread import InlineExecutor, ThreadExecutor


class Closing:
    """A loop that is closed between the question whether it is, and the call."""

    def is_closed(self) -> bool:
        """Not yet."""
        return False

    def call_soon_threadsafe(self, function):
        """Now it is."""
        raise RuntimeError("Event loop is closed")


async def test_what_is_told_to_a_loop_that_closes_is_told_to_nobody():
    """The control side may be at work when the program ends without waiting for it."""
    control = ThreadExecutor("test")
    home, control._home = control._home, cast("asyncio.AbstractEventLoop", Closing())
    control.call_soon(bool)
    control._home = home
    await control.close()


@pytest.mark.parametrize("make", [InlineExecutor, lambda: ThreadExecutor("test")])
async def test_what_is_asked_after_the_end_is_refused(make):
    """A handler that outlives its processor gets an error, and waits for nothing for ever."""
    control = make()
    asked = []

    async def ask() -> None:
        asked.append("something")

    await control.call(ask())
    closing = asyncio.create_task(control.close())
    await asyncio.sleep(0)

    with pytest.raises(StoreUnavailableError, match="has stopped"):
        await control.call(ask())
    await closing
    with pytest.raises(StoreUnavailableError, match="has stopped"):
        await control.call(ask())
    assert asked == ["something"]


@pytest.mark.parametrize("make", [InlineExecutor, lambda: ThreadExecutor("test")])
async def test_who_waits_for_an_answer_when_it_closes_is_let_go(make):
    """What was asked just before is cancelled with the rest."""
    control = make()
    waiting = asyncio.create_task(control.call(asyncio.Event().wait()))
    await asyncio.sleep(0)
    await control.close()
    await asyncio.wait([waiting], timeout=20)

    assert waiting.cancelled()


@pytest.mark.parametrize("kind", [lambda: ThreadExecutor("test"), InlineExecutor])
async def test_an_error_that_nobody_waits_for_any_more_is_not_left_behind(kind):
    """The caller was cancelled; what it had asked for fails later, and asyncio has no complaint."""
    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    control, begun = kind(), asyncio.Event()

    async def fail() -> None:
        control.call_soon(begun.set)
        await asyncio.sleep(0.05)
        raise OSError("too late")

    caller = asyncio.create_task(control.call(fail()))
    await begun.wait()
    caller.cancel()
    await asyncio.wait([caller])
    await asyncio.sleep(0.1)
    await control.close()
    was_cancelled = caller.cancelled()
    del caller  # It knows the answer as long as it lives.
    gc.collect()

    assert was_cancelled
    assert complaints == []
