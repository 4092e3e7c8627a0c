"""Load the handler class that ``module:Handler`` names."""

from eventproc.cli.arguments.modules import import_module
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
    found: object = import_module(module_name)
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
