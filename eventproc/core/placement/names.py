"""Placements as text: ``Even``, ``Ring:bound=1.25``, ``Ordinal:replicas=4,literal=true``."""

from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final

from eventproc.core.placement.even import Even
from eventproc.core.placement.ordinal import Ordinal
from eventproc.core.placement.placement import Placement
from eventproc.core.placement.ring import Ring
from eventproc.core.placement.weighted import Weighted
from eventproc.errors import ConfigurationError

PLACEMENTS: Final = MappingProxyType({cls.__name__: cls for cls in (Even, Weighted, Ordinal, Ring)})
"""The classes of this package, by name."""


def placement_named(text: str) -> Placement:
    """Return the placement of this package that a text names; the inverse of ``Placement.name``.

    Raises:
        ConfigurationError: there is none, or a setting is wrong; the message says what is possible.
    """
    name, _, settings = text.partition(":")
    cls: Any = PLACEMENTS.get(name)
    if cls is None:
        raise ConfigurationError(
            f"placement {text!r} is not known: use one of {', '.join(PLACEMENTS)}"
        )
    values = {}
    known = {field.name for field in fields(cls)}
    for part in filter(None, settings.split(",")):
        key, _, value = part.partition("=")
        if key not in known:
            possible = ", ".join(sorted(known)) or "none"
            raise ConfigurationError(
                f"placement {text!r}: {name} has no setting {key!r}; its settings are: {possible}"
            )
        values[key] = _value(value)
    placement: Placement = cls(**values)
    return placement


def _value(text: str) -> object:
    """Return a number or a truth value; anything else stays text, and is refused as such."""
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
