"""Import modules that options name."""

import importlib
import sys
from pathlib import Path

from eventproc.errors import ConfigurationError
from eventproc.extras import MissingExtraError


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
