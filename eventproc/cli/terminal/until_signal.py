"""The end of verbs that work until they are stopped."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from eventproc.concurrency.tasks import end


async def until_signal(*working: "Coroutine[Any, Any, object] | asyncio.Task[None]") -> None:
    """Work until SIGINT or SIGTERM comes, or until one of the tasks ends; its error is raised."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # On Windows Ctrl+C interrupts.
            loop.add_signal_handler(number, stopped.set)
    tasks = [asyncio.ensure_future(each) for each in (stopped.wait(), *working)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await end(tasks)
    for task in done:
        task.result()
