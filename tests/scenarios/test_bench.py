"""The test environment: what every other test relies on."""

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
    """Otherwise it would be created and dropped, and the test would pass."""
    assert asyncio.get_running_loop().is_running()


def test_blocking_the_event_loop_in_the_library_raises():
    """At the place where it happens."""
    names: dict[str, Callable[[], Coroutine[None, None, None]]] = {}
    place = eventproc.__file__.replace("__init__", "blocks_the_loop")
    exec(compile(BLOCKING, place, "exec"), names)  # as if it were in the library

    with pytest.raises(blockbuster.BlockingError):
        asyncio.run(names["handle"]())
