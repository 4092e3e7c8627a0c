"""Placements as text: ``Even``, ``Ring:bound=1.25``, ``Ordinal:replicas=4,literal=true``.

``Published:Ring:bound=1.25`` is a published one: its leader computes the plan of the ``Ring``.
"""

from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final

from eventproc._core.placement.by_load import ByLoad
from eventproc._core.placement.even import Even
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.placement import Placement
from eventproc._core.placement.published import PREFIX, Published, Unavailable
from eventproc._core.placement.ring import Ring
from eventproc._core.placement.weighted import Weighted
from eventproc.errors import ConfigurationError

PLACEMENTS: Final = MappingProxyType(
    {cls.__name__: cls for cls in (Even, Weighted, Ordinal, Ring, ByLoad)}
)
"""The classes of this package, by name, except ``Published``."""


def placement_named(text: str) -> Placement:
    """Return the placement of this package that a text names; the inverse of ``Placement.name``.

    Raises:
        ConfigurationError: there is none, or a setting is wrong; the message says what is possible.
    """
    if text.startswith(PREFIX):
        return Published(placement_named(text.removeprefix(PREFIX)))
    name, _, settings = text.partition(":")
    cls: Any = PLACEMENTS.get(name)
    if cls is None:
        raise ConfigurationError(
            f"placement {text!r} is not known: use one of {', '.join(PLACEMENTS)}, or {PREFIX} and "
            "one of them"
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


def agreed(names: Collection[str], own: Placement) -> Placement | None:
    """Return the placement that a group follows; ``None`` if this processor does not have it.

    It is the one that most members name; of equally many, the one whose name sorts first. All
    members find the same, so a rolling deployment changes the placement once, in the middle.

    Args:
        names: The name of each member's own placement, this processor's included.
        own: This processor's.
    """
    name = most_named(names or [own.name])
    if name == own.name:
        return own
    try:
        return placement_named(name)
    except ConfigurationError:
        if name.startswith(PREFIX):
            return Published(Unavailable(name.removeprefix(PREFIX)))
        return None


def most_named(names: Collection[str]) -> str:
    """Return the name that occurs most often; of equally many, the one that sorts first."""
    counts = Counter(names)
    return min(counts, key=lambda name: (-counts[name], name))


def _value(text: str) -> object:
    """Return a number or a truth value; anything else stays text, and is refused as such."""
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text
