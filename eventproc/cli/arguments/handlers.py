"""Load the handler class that ``module:Handler`` names."""

from collections.abc import Callable
from typing import Any, TypeAlias

from eventproc.cli.arguments.modules import import_module
from eventproc.errors import ConfigurationError
from eventproc.handler import BlockingPartitionHandler, HandlerFactory, PartitionHandler
from eventproc.resources import BlockingResourceHandler, ResourceHandler
from eventproc.resources.handler import ResourceHandlerFactory

_Kinds: TypeAlias = tuple[type, type]


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
