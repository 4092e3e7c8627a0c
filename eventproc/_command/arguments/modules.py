"""Import what options name as ``module:name``: handlers, functions, placements, rosters."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from eventproc._core.placement.names import PLACEMENTS, placement_named
from eventproc._core.placement.placement import Placement
from eventproc._core.placement.published import PREFIX, Published
from eventproc._delivery.handler import BlockingPartitionHandler, HandlerFactory, PartitionHandler
from eventproc._group.resources.handler import (
    BlockingResourceHandler,
    ResourceHandler,
    ResourceHandlerFactory,
)
from eventproc.errors import ConfigurationError, MissingExtraError
from eventproc.ports import Roster

T = TypeVar("T")

_Kinds: TypeAlias = tuple[type, type]

KUBERNETES: Final = {"statefulset": "StatefulSetRoster", "replicaset": "ReplicaSetRoster"}
"""The classes of rosters that ``--roster`` has a word for."""


def load_handler(spec: str) -> HandlerFactory:
    """Import the handler of partitions that ``module:Handler`` names.

    Raises:
        ConfigurationError: The name does not exist or is not a handler; the message says which.
    """
    found: HandlerFactory = _load(spec, (PartitionHandler, BlockingPartitionHandler))
    return found


def load_resource_handler(spec: str) -> ResourceHandlerFactory:
    """Import the handler of resources that ``module:Handler`` names.

    Raises:
        ConfigurationError: The name does not exist or is not a handler; the message says which.
    """
    found: ResourceHandlerFactory = _load(spec, (ResourceHandler, BlockingResourceHandler))
    return found


def load_function(spec: str) -> Callable[[], Any]:
    """Import the function that ``module:function`` names; the current folder is searched, too.

    Raises:
        ConfigurationError: The name does not exist or cannot be called.
    """
    module_name, _, name = spec.partition(":")
    found = getattr(import_module(module_name), name, None) if module_name and name else None
    if not callable(found):
        raise ConfigurationError(
            f"{spec!r} is no function: give MODULE:FUNCTION, for example providers:list_names for "
            "the coroutine function list_names in providers.py"
        )
    function: Callable[[], Any] = found
    return function


def _load(spec: str, kinds: _Kinds) -> Any:  # noqa: ANN401 - a class or a function of the user's
    """Import what makes handlers; the current folder is searched, too.

    It may be a handler class, or a function without parameters that returns a handler.
    """
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        raise ConfigurationError(
            f"the handler is {spec!r}: give MODULE:CLASS, for example orders:OrderHandler for the "
            "class OrderHandler in orders.py"
        )
    found: object = import_module(module_name)
    for part in name.split("."):
        found = _member(found, part, module_name, kinds)
    if isinstance(found, type):
        if not issubclass(found, kinds):
            raise ConfigurationError(
                f"{spec} is a class, but not a handler: let it inherit from "
                f"eventproc.{kinds[0].__name__} or eventproc.{kinds[1].__name__}"
            )
        return found
    if isinstance(found, kinds):
        what = "partition" if kinds[0] is PartitionHandler else "resource"
        raise ConfigurationError(
            f"{spec} is one handler, but every {what} needs its own: name its class instead"
        )
    if not callable(found):
        raise ConfigurationError(
            f"{spec} is {type(found).__name__}, not a handler: name a class that inherits from "
            f"eventproc.{kinds[0].__name__}"
        )
    return found


def _member(owner: object, name: str, module_name: str, kinds: _Kinds) -> object:
    try:
        found: object = getattr(owner, name)
    except AttributeError:
        classes = sorted(
            other
            for other, value in vars(owner).items()
            if isinstance(value, type) and issubclass(value, kinds) and value not in kinds
        )
        hint = f"it has {', '.join(classes)}" if classes else "it has no handler class at all"
        raise ConfigurationError(f"module {module_name!r} has no {name!r}; {hint}") from None
    return found


def parse_placement(option: str, text: str) -> Placement:
    """Parse ``Even``, ``Ring:bound=1.25``, or ``module:name`` for a class or an instance.

    ``Published:`` may precede each of them. The current folder is searched for the module, too.

    Raises:
        ConfigurationError: there is no such placement; the message says what is possible.
    """
    if text.startswith(PREFIX):
        return Published(parse_placement(option, text.removeprefix(PREFIX)))
    name, _, rest = text.partition(":")
    if name in PLACEMENTS or not rest:
        return placement_named(text)
    return instance_of(Placement, option, text, text, ", ".join(PLACEMENTS))  # type: ignore[type-abstract]


def make_roster(text: str) -> Roster | None:
    """Return the roster that ``--roster`` names; ``None`` for an empty text.

    Raises:
        ConfigurationError: there is no such roster; the message says what is possible.
    """
    if not text:
        return None
    place = f"eventproc.rosters.kubernetes:{KUBERNETES[text]}" if text in KUBERNETES else text
    return instance_of(Roster, "--roster", text, place, " or ".join(KUBERNETES))  # type: ignore[type-abstract]


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
