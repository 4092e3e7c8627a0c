"""Load the handler class that ``module:Handler`` names."""

import importlib
import sys
from pathlib import Path

from eventproc.errors import ConfigurationError
from eventproc.handler import BlockingPartitionHandler, HandlerFactory, PartitionHandler

_KINDS = (PartitionHandler, BlockingPartitionHandler)


def load_handler(spec: str) -> HandlerFactory:
    """Import the handler that ``module:Handler`` names; the current folder is searched, too.

    The name may be a handler class, or a function without parameters that returns a handler.

    Raises:
        ConfigurationError: The name does not exist or is not a handler; the message says which.
    """
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        raise ConfigurationError(
            f"the handler is {spec!r}: give MODULE:CLASS, for example orders:OrderHandler for the "
            "class OrderHandler in orders.py"
        )
    found: object = _import(module_name)
    for part in name.split("."):
        found = _member(found, part, module_name)
    if isinstance(found, type):
        if not issubclass(found, _KINDS):
            raise ConfigurationError(
                f"{spec} is a class, but not a handler: let it inherit from "
                "eventproc.PartitionHandler or eventproc.BlockingPartitionHandler"
            )
        return found
    if isinstance(found, _KINDS):
        raise ConfigurationError(
            f"{spec} is one handler, but every partition needs its own: name its class instead"
        )
    if not callable(found):
        raise ConfigurationError(
            f"{spec} is {type(found).__name__}, not a handler: name a class that inherits from "
            "eventproc.PartitionHandler"
        )
    return found


def _import(module_name: str) -> object:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigurationError(
                f"there is no module {module_name!r}: run this in the folder of "
                f"{module_name.partition('.')[0]}.py, or install the package it is in"
            ) from error
        raise ConfigurationError(
            f"module {module_name!r} imports {error.name!r}, which is not installed: install it"
        ) from error
    except Exception as error:
        raise ConfigurationError(
            f"module {module_name!r} cannot be imported: {type(error).__name__}: {error}; "
            f"`python -c 'import {module_name}'` shows where"
        ) from error


def _member(owner: object, name: str, module_name: str) -> object:
    try:
        found: object = getattr(owner, name)
    except AttributeError:
        classes = sorted(
            other
            for other, value in vars(owner).items()
            if isinstance(value, type) and issubclass(value, _KINDS) and value not in _KINDS
        )
        hint = f"it has {', '.join(classes)}" if classes else "it has no handler class at all"
        raise ConfigurationError(f"module {module_name!r} has no {name!r}; {hint}") from None
    return found
