"""Finds out whether an event loop is running."""

import asyncio


def is_loop_running() -> bool:
    """Whether the caller runs inside an event loop.

    The function exists so that callers need no ``except`` block around their work: each traceback
    from inside it would show this ``RuntimeError`` as its context.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
