"""The names under which users know the classes: of the package that they import them from.

Messages, pickles and stored records carry the name of a class with its module. A private module may
be renamed, so no name that leaves the process has one.
"""

from collections.abc import Mapping
from itertools import takewhile
from types import FunctionType
from typing import Any

_PACKAGES = ("eventproc", "checkpointstores", "spark_integration")


def set_module(public: str, names: Mapping[str, Any]) -> None:
    """Name a public module as the one of what it exports from private modules.

    Call it at the end of the module, with its ``globals()``.
    """
    for thing in map(names.__getitem__, names["__all__"]):
        if isinstance(thing, type | FunctionType) and "._" in thing.__module__:
            thing.__module__ = public


def public_name(cls: type) -> str:
    """Return module and name of a class; for a class of ours without its private modules."""
    package, *modules = cls.__module__.split(".")
    if package in _PACKAGES:
        modules = list(takewhile(lambda name: not name.startswith("_"), modules))
    return ".".join([package, *modules, cls.__qualname__])
