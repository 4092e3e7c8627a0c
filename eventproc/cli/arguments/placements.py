"""Placements as text: those of this library by name, others as ``module:name``."""

from eventproc.cli.arguments.modules import instance_of
from eventproc.core.placement.names import PLACEMENTS, placement_named
from eventproc.core.placement.placement import Placement
from eventproc.core.placement.published import PREFIX, Published


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
