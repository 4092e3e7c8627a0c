"""The loads of resources: as text in the member records of their owners, and as a plan's input."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import quote, unquote

MEASURES: Final = ("busy", "events", "bytes")

TEXT_MAX: Final = 3000
"""Characters of a report: the metadata of a blob has at most 8 KiB, all keys together."""

REST: Final = "*"
"""Stands for the resources that did not fit into the report, with their mean load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """The work done for a resource since its owner began to serve it, in each measure."""

    busy: float
    """Seconds in calls of the handler; calls at the same time add up."""

    events: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Loads:
    """The loads of a group's resources, and when resources last moved because of load."""

    __module__ = "eventproc.placements"

    by_resource: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Those that were measured for long enough. Any unit: only proportions count."""

    now_ms: int = 0
    """The store's time, in milliseconds since 1970."""

    moved_ms: tuple[int, ...] = ()
    """When resources were moved because of their load: one time for each, oldest first."""


def as_report(by: str, load_by_resource: Mapping[str, float]) -> str:
    """Return what an owner measured as text: ``busy 0=0.25,17=0.031,*=0.0004``."""
    parts: list[str] = []
    left = TEXT_MAX - len(by)
    ranked = sorted(load_by_resource.items(), key=lambda pair: (-pair[1], pair[0]))
    for index, (resource, load) in enumerate(ranked):
        part = f"{quote(resource, safe='')}={load:.3g}"
        left -= len(quote(part, safe="=")) + 1
        if left < 0:
            rest = [load for _, load in ranked[index:]]
            parts.append(f"{REST}={sum(rest) / len(rest):.3g}")
            break
        parts.append(part)
    return f"{by} {','.join(parts)}" if parts else ""


def in_report(text: str, by: str, owned: Iterable[str]) -> dict[str, float]:
    """Return the load of each of the *owned* resources that a report has.

    A report that measures something else, or that is damaged, has none.
    """
    what, _, rest = text.partition(" ")
    if what != by:
        return {}
    found: dict[str, float] = {}
    for part in rest.split(","):
        name, _, number = part.rpartition("=")
        try:
            load = float(number)
        except ValueError:
            continue
        if 0 <= load < float("inf"):
            found[REST if name == REST else unquote(name)] = load
    default = found.pop(REST, None)
    loads = {resource: found.get(resource, default) for resource in owned}
    return {resource: load for resource, load in loads.items() if load is not None}
