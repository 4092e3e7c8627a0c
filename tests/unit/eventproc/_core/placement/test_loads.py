"""What owners report of their loads, as text in member records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.placement.loads import TEXT_MAX, as_report, in_report

names = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda name: name != "*")


def test_a_report_names_what_is_measured_and_the_heaviest_first():
    """With three digits, which is more than a measurement has."""
    assert as_report("busy", {"0": 0.00123456, "1": 0.25}) == "busy 1=0.25,0=0.00123"
    assert as_report("busy", {}) == ""


@given(st.dictionaries(names, st.floats(0, 1e9), max_size=20))
def test_a_report_is_read_as_it_was_written(loads):
    """Whatever the resources are called."""
    found = in_report(as_report("events", loads), "events", loads)

    assert found == {name: pytest.approx(load, rel=0.01) for name, load in loads.items()}


def test_a_long_report_is_cut_and_the_rest_has_its_mean():
    """A blob's metadata has room for some hundred resources."""
    loads = {f"partition-{n}": 1 / (n + 1) for n in range(1000)}
    text = as_report("busy", loads)
    found = in_report(text, "busy", loads)

    assert len(text) <= TEXT_MAX
    assert found["partition-0"] == 1
    assert sum(found.values()) == pytest.approx(sum(loads.values()), rel=0.01)


@pytest.mark.parametrize(
    "text", ["", "busy", "busy ", "events 0=1", "busy 0", "busy 0=x", "busy 0=nan", "busy 0=-1"]
)
def test_what_is_no_report_of_this_measure_has_no_loads(text):
    """A damaged one does no harm."""
    assert in_report(text, "busy", ["0"]) == {}


def test_only_what_the_member_owns_counts():
    """It may have measured what it has handed over since."""
    assert in_report("busy 0=1,1=2", "busy", ["1", "2"]) == {"1": 2}
