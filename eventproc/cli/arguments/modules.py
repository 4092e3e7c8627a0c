"""Import modules that options name."""

import importlib
import sys
from pathlib import Path
from typing import TypeVar

from eventproc.errors import ConfigurationError
from eventproc.extras import MissingExtraError

T = TypeVar("T")


def instance_of(kind: type[T], option: str, text: str, place: str, forms: str) -> T:
    """Return the instance that *place* (``module:name``) names; a class is called first.

    Args:
        kind: Its class.
        option: The option, for the messages.
        text: The option's value, for the messages.
        place: Where the instance or its class is.
        forms: What else may be given.

    Raises:
        ConfigurationError: there is no such instance; the message says what is possible.
    """
    module_name, _, name = place.partition(":")
    found: object = import_module(module_name) if name else None
    try:
        for part in filter(None, name.split(".")):
            found = getattr(found, part)
    except AttributeError:
        raise ConfigurationError(
            f"module {module_name!r} has no {name!r}", setting=option, value=repr(text)
        ) from None
    if isinstance(found, type) and issubclass(found, kind):
        try:
            found = found()
        except TypeError as error:
            raise ConfigurationError(
                f"a class that cannot be called without arguments ({error}): name an instance of "
                "it instead",
                setting=option,
                value=repr(text),
            ) from error
    if not isinstance(found, kind):
        raise ConfigurationError(
            f"this is no {kind.__name__.lower()}: give {forms}, or MODULE:NAME of a class that "
            f"inherits from {kind.__name__}, or of an instance of one",
            setting=option,
            value=repr(text),
        )
    return found


def import_module(module_name: str) -> object:
    """Import a module; the current folder is searched, too.

    Raises:
        ConfigurationError: it does not exist or cannot be imported; the message says why.
    """
    if module_name.endswith(".py") or "/" in module_name:
        name = Path(module_name).stem
        raise ConfigurationError(
            f"{module_name!r} is a path, and the name of a module is needed: give {name}, and run "
            f"this in the folder of {name}.py"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name)
    except MissingExtraError:
        raise
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
