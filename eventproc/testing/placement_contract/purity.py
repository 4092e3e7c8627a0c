"""Finds calls of impure functions: those that read a clock, the machine, or the network.

It sees C functions that Python code calls directly. It does not see one that another C function
calls, as in ``map(call, [time.time])`` or ``dict.setdefault``.
"""

import gc
import os
import random
import sys
from collections.abc import Callable
from datetime import date
from types import FrameType, ModuleType
from typing import Final

IMPURE_MODULES: Final = frozenset(
    {"time", "posix", "nt", "io", "_io", "socket", "_socket", "_uuid"}
)
"""Modules in C whose functions a placement must not call."""

HARMLESS: Final = frozenset({"fspath"})
CLOCK_METHODS: Final = frozenset({"now", "today", "utcnow"})
SHARED_RANDOM: Final = getattr(random.random, "__self__", None)
"""The generator behind the functions of the module ``random``."""

ENVIRONMENT: Final = (os.environ, getattr(os, "environb", None))


def impure_calls(function: Callable[[], object]) -> list[str]:
    """Call a function, and return the names of the impure functions that it calls, sorted."""
    found: set[str] = set()

    def watch(frame: FrameType, event: str, function: object) -> None:
        name = None
        if event == "c_call" and "importlib" not in frame.f_code.co_filename:
            name = _impure_c_function(function)
        elif event == "call":
            name = _impure_frame(frame)
        if name is not None:
            found.add(name)

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # A callback of the collector may read a clock; that is not the function's call.
    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return sorted(found)


def _impure_c_function(function: object) -> str | None:
    """Return the name of a function of C that reads more than its arguments."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if isinstance(owner, ModuleType):
        is_impure = owner.__name__ in IMPURE_MODULES and name not in HARMLESS
        return f"{owner.__name__}.{name}" if is_impure else None
    if isinstance(owner, type) and issubclass(owner, date) and name in CLOCK_METHODS:
        return f"{owner.__name__}.{name}"
    return f"random.{name}" if owner is SHARED_RANDOM else None


def _impure_frame(frame: FrameType) -> str | None:
    """Return the name of an impure function of Python."""
    if frame.f_globals is vars(os):
        subject = frame.f_locals.get("self")
        return "os.environ" if any(subject is known for known in ENVIRONMENT) else None
    is_unseeded = (
        frame.f_code is random.Random.__init__.__code__ and frame.f_locals.get("x") is None
    )
    return "random.Random without a seed" if is_unseeded else None
