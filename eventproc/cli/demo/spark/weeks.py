"""The figures of Spark's windowed aggregate, and the same figures computed directly.

Like the logbooks, the figures change if a flight is lost or counted twice.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Final, NamedTuple

from eventproc.cli.demo.flights import Flight

AIRPORTS: Final = ("EWR", "JFK", "LGA")
"""The airports of New York."""


class Figures(NamedTuple):
    """The figures of one airport in one week."""

    flights: int = 0
    miles: int = 0
    late_min: int = 0


Weeks = dict[tuple[str, str], Figures]
"""Figures by the Monday of the week and the airport."""


def computed_directly(flights: Iterable[Flight]) -> Weeks:
    """Return the figures of these flights, with neither an event hub nor Spark in between."""
    found: Weeks = {}
    for flight in flights:
        day = date.fromisoformat(str(flight["departed"])[:10])
        key = (day - timedelta(days=day.weekday())).isoformat(), str(flight["from"])
        before = found.get(key, Figures())
        found[key] = Figures(
            before.flights + 1,
            before.miles + int(flight["miles"]),
            before.late_min + max(0, int(flight["late_min"])),
        )
    return found
