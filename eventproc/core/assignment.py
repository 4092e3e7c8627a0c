"""Which pumps to start and which to end, so that what runs is what is owned."""

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
    """Start what is owned and does not run; end what runs and is not owned.

    What is ``ending`` already is left alone: it has a pump, and may not get a second one.
    """
    return Adjustment(
        start=tuple(sorted(set(owned) - set(running) - set(ending))),
        end=tuple(sorted(set(running) - set(owned) - set(ending))),
    )
