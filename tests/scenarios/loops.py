"""Runs the same object in one event loop after the other."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


async def in_two_loops(use: Callable[[], Awaitable[Any]]) -> None:
    """Await ``use()`` in two new event loops, one after the other, in another thread."""

    async def run() -> None:
        await asyncio.wait_for(use(), 60)

    for _ in range(2):
        await asyncio.to_thread(lambda: asyncio.run(run()))
