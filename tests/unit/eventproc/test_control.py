"""What passes between the two sides of a processor."""

import asyncio
from typing import cast

from eventproc.control import LoopThread


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
    control = LoopThread("test")
    home, control._home = control._home, cast("asyncio.AbstractEventLoop", Closing())
    control.tell(bool)
    control._home = home
    await control.close()
