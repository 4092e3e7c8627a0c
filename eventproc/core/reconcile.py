"""Which pumps to start and which to end, so that each owned partition has one."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """What to change, in the order of the partition ids."""

    start: tuple[str, ...]
    end: tuple[str, ...]


def reconcile(
    *, running: Collection[str], owned: Collection[str], ending: Collection[str] = ()
) -> Adjustment:
    """Start a pump for each owned partition without one; end the pumps of all others.

    A partition whose pump is *ending* is in neither: it must not get a second pump.
    """
    return Adjustment(
        start=tuple(sorted(set(owned) - set(running) - set(ending))),
        end=tuple(sorted(set(running) - set(owned) - set(ending))),
    )
