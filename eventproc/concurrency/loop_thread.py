"""An event loop in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from eventproc.concurrency.tasks import end

T = TypeVar("T")


def ping(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    """Have a function called on a loop soon, if that still runs; called from any thread."""
    with suppress(RuntimeError):  # The loop is closed; that may happen at any moment.
        loop.call_soon_threadsafe(function)


async def end_others() -> None:
    """Cancel all tasks of the running loop besides the one that calls this, and await their end."""
    await end([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])


class LoopThread:
    """An event loop that runs in a daemon thread until it is closed."""

    def __init__(self, thread_name: str, *, at_end: Callable[[], object] = lambda: None) -> None:
        """Start the thread, which calls *at_end* before it ends."""
        self.loop = asyncio.new_event_loop()
        """For ``run_coroutine_threadsafe``."""

        self._at_end = at_end
        self._thread = threading.Thread(target=self._run, name=thread_name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()
        self._at_end()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop; return its result or raise its error."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def call_soon(self, function: Callable[[], object]) -> None:
        """Have a function called on the loop soon, if that still runs."""
        ping(self.loop, function)

    @property
    def is_closed(self) -> bool:
        """Whether the thread has ended."""
        return self.loop.is_closed()

    def begin_close(self) -> None:
        """Cancel what still runs on the loop, and end the thread then; do not wait for it."""
        cancelled = asyncio.run_coroutine_threadsafe(self._cancel_all(), self.loop)
        cancelled.add_done_callback(lambda _: self.call_soon(self.loop.stop))

    def close(self) -> None:
        """Cancel what still runs on the loop, and end the thread."""
        self.begin_close()
        self._thread.join()

    async def _cancel_all(self) -> None:
        await end_others()
        await self.loop.shutdown_asyncgens()
        await asyncio.sleep(0)  # A closed transport closes its socket in the loop's next turn.
