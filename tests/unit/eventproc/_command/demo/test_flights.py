"""The demo's data set and figures: genuine data, and figures that change with every mistake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._command.demo.flights import (
    FLIGHT_COUNT_MAX,
    Logbook,
    computed_directly,
    find_data_file,
    read_flights,
)
from eventproc._command.demo.publisher import batches

flights = st.lists(
    st.builds(
        lambda aircraft, late: {"aircraft": aircraft, "late_min": late, "miles": 100},
        st.sampled_from(["N1", "N2", "N3"]),
        st.integers(-30, 90),
    )
)


def test_the_data_file_has_the_genuine_flights():
    """The first one of 2013 went from Newark to Houston, and was eleven minutes late."""
    (first,) = read_flights(find_data_file(), 1)

    assert first == {
        "aircraft": "N14228",
        "flight": "UA 1545",
        "from": "EWR",
        "to": "IAH",
        "departed": "2013-01-01 0517",
        "miles": 1400,
        "late_min": 11,
    }


@pytest.mark.long
def test_all_flights_can_be_read():
    """The option's limit is the number of flights that took place."""
    assert sum(1 for _ in read_flights(find_data_file(), FLIGHT_COUNT_MAX + 1)) == FLIGHT_COUNT_MAX


def test_an_aircraft_has_five_figures():
    """Flights, miles, minutes late, flights on time in a row now, and the most in a row."""
    late = [0, 14, 15, -5, 3]
    logbook = computed_directly({"aircraft": "N1", "late_min": m, "miles": 100} for m in late)

    assert logbook.figures_by_aircraft == {"N1": [5, 500, 32, 2, 2]}


@given(flights)
def test_a_logbook_restored_from_its_state_is_equal(given_flights):
    """All figures are in the state."""
    logbook, restored = computed_directly(given_flights), Logbook()
    restored.take_in(logbook.as_state())

    assert restored.figures_by_aircraft == logbook.figures_by_aircraft


@given(flights)
def test_batches_keep_each_aircraft_s_order(given_flights):
    """Sorting by aircraft for sending changes no figure."""
    sent = [flight for _, batch in batches(given_flights) for flight in batch]
    figures = computed_directly(sent).figures_by_aircraft

    assert figures == computed_directly(given_flights).figures_by_aircraft


@pytest.mark.parametrize("change", ["lost", "twice", "out of order"])
def test_a_lost_repeated_or_reordered_flight_changes_the_figures(change):
    """So the demo would notice any of them."""
    right = [{"aircraft": "N1", "late_min": m, "miles": 100} for m in (0, 60, 0, 0)]
    wrong = {
        "lost": right[1:],
        "twice": [*right, right[0]],
        "out of order": [*right[1:], right[0]],
    }[change]

    assert (
        computed_directly(wrong).figures_by_aircraft != computed_directly(right).figures_by_aircraft
    )
