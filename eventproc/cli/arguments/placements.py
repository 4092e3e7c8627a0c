"""Placements as text: those of this library by name, others as ``module:name``."""

from eventproc.cli.arguments.modules import import_module
from eventproc.core.placement.names import PLACEMENTS, placement_named
from eventproc.core.placement.placement import Placement
from eventproc.core.placement.published import PREFIX, Published
from eventproc.errors import ConfigurationError


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
    found = _found(option, text, name, rest)
    if isinstance(found, type) and issubclass(found, Placement):
        try:
            found = found()
        except TypeError as error:
            raise ConfigurationError(
                f"a class that cannot be called without arguments ({error}): name an instance of "
                "it instead",
                setting=option,
                value=repr(text),
            ) from error
    if not isinstance(found, Placement):
        raise ConfigurationError(
            f"this is no placement: name one of {', '.join(PLACEMENTS)}, or a class that inherits "
            "from Placement, or an instance of one",
            setting=option,
            value=repr(text),
        )
    return found


def _found(option: str, text: str, module_name: str, name: str) -> object:
    found: object = import_module(module_name)
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise ConfigurationError(
            f"module {module_name!r} has no {name!r}", setting=option, value=repr(text)
        ) from None
    return found
