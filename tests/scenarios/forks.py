"""Runs a function in a forked child of this process."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from eventproc.errors import ConfigurationError


@contextmanager
def forked(function: Callable[[int], object]) -> Iterator[int]:
    """Call the function in a child, with a descriptor; yield one that reads what it writes there.

    The block ends when the child has.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            function(writing)
        except BaseException as error:  # noqa: BLE001 - the test reads it
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        yield reading
    finally:
        os.waitpid(child, 0)
        os.close(reading)


def refusals(calls: dict[str, Callable[[], Any]]) -> dict[str, str]:
    """Return what each call raises in a forked child; a coroutine is only begun."""

    def call_each(writing: int) -> None:
        for name, call in calls.items():
            try:
                begun = call()
                if hasattr(begun, "send"):
                    with suppress(StopIteration):
                        begun.send(None)
                answer = "nothing"
            except ConfigurationError as error:
                answer = str(error)
            os.write(writing, f"{name}={answer}\n".encode())

    with forked(call_each) as reading, os.fdopen(os.dup(reading)) as lines:
        return dict(line.rstrip("\n").split("=", 1) for line in lines)
