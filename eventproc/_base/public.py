"""The names under which users know the classes: of the package that they import them from.

Messages, pickles and stored records carry the name of a class with its module. A private module may
be renamed, so no name that leaves the process has one.
"""

from collections.abc import Mapping
from types import FunctionType

_PACKAGES = ("eventproc", "checkpointstores", "spark_integration")


def set_module(package: str, names: Mapping[str, object]) -> None:
    """Name a public package as the module of what its private modules define.

    Call it at the end of the package's ``__init__``, with its ``globals()``.
    """
    for thing in names.values():
        if isinstance(thing, type | FunctionType) and thing.__module__.startswith(f"{package}._"):
            thing.__module__ = package


def public_name(cls: type) -> str:
    """Return module and name of a class; for a class of ours without its private modules."""
    package, *modules = cls.__module__.split(".")
    if package in _PACKAGES:
        private = next(
            (at for at, name in enumerate(modules) if name.startswith("_")), len(modules)
        )
        modules = modules[:private]
    return ".".join([package, *modules, cls.__qualname__])
