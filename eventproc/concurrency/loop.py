"""Finds out whether an event loop is running."""

import asyncio


def is_loop_running() -> bool:
    """Whether the caller runs inside an event loop.

    A caller that did its work inside the ``except`` below would have this error as the context of
    every later traceback.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
