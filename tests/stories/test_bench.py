"""The test bench itself: what it promises to every other test."""

import asyncio
from collections.abc import Callable, Coroutine

import blockbuster
import pytest

import eventproc

BLOCKING = """
import time

async def handle():
    time.sleep(0.001)
"""


async def test_a_coroutine_is_run_as_a_test():
    """Without this a coroutine would be created, dropped, and called a success."""
    assert asyncio.get_running_loop().is_running()


def test_our_code_must_not_block_the_loop():
    """A sleep in a coroutine of the library is refused where it happens."""
    names: dict[str, Callable[[], Coroutine[None, None, None]]] = {}
    place = eventproc.__file__.replace("__init__", "blocks_the_loop")
    exec(compile(BLOCKING, place, "exec"), names)  # as if it stood in the library

    with pytest.raises(blockbuster.BlockingError):
        asyncio.run(names["handle"]())
