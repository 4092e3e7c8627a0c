"""The smoothed loads that a processor reports."""

import math

import pytest

from eventproc._core.placement.loads import WorkDone, in_report
from eventproc._group.load_meter import HALF_LIFE, MEASURED_MIN, LoadMeter

CYCLE_S = 10.0


class Meter:
    """A meter, and a partition that it measures in each cycle."""

    def __init__(self):
        self.now_s = 0.0
        self.busy_s = 0.0
        self.meter = LoadMeter(lambda: self.now_s)

    def after(self, seconds, share, known=None):
        """Measure a share for so long; return what is reported then, if anything."""
        for _ in range(int(seconds / CYCLE_S)):
            self.report(known)
            self.now_s += CYCLE_S
            self.busy_s += share * CYCLE_S
        return self.report(known)

    def report(self, known=None):
        """Return what is reported now."""
        work = {"0": WorkDone(busy=self.busy_s, events=0, bytes=0)}
        text = self.meter.report("busy", work, {} if known is None else {"0": known})
        return in_report(text, "busy", ["0"]).get("0")


def test_nothing_is_reported_before_it_was_measured_for_long_enough():
    """Then it is what was measured, although it was not measured for long."""
    meter = Meter()

    assert meter.after(MEASURED_MIN.total_seconds() - CYCLE_S, 0.5) is None
    assert meter.after(CYCLE_S, 0.5) == pytest.approx(0.5)


def test_after_a_half_life_a_new_load_counts_half():
    """An exponential mean, whatever the time between two polls."""
    meter = Meter()
    meter.after(3600, 0.2)

    assert meter.after(HALF_LIFE.total_seconds(), 0.6) == pytest.approx(0.4, abs=0.001)


def test_what_the_former_owner_measured_counts_from_the_start():
    """A partition that has just moved does not look idle."""
    meter = Meter()

    assert meter.report(known=0.5) == 0.5
    assert meter.after(HALF_LIFE.total_seconds(), 0.1) == pytest.approx(0.3, abs=0.001)


def test_a_new_pump_begins_from_zero_and_the_mean_goes_on():
    """The work that it has done is less than before."""
    meter = Meter()
    meter.after(3600, 0.5)
    meter.busy_s = 0.0

    assert meter.report() == pytest.approx(0.5)


def test_a_partition_that_is_not_served_any_more_is_forgotten():
    """And so is everything if another measure is asked for."""
    meter = Meter()
    meter.after(3600, 0.5)

    assert meter.meter.report("busy", {}, {}) == ""
    assert meter.report() is None

    meter.after(3600, 0.5)

    assert meter.meter.report("events", {"0": WorkDone(busy=0, events=1, bytes=0)}, {}) == ""


@pytest.mark.parametrize("swing_s", [10, 30, 60])
def test_a_load_that_swings_looks_nearly_even(swing_s):
    """From the first report on, it stays within a dead band of 15 %."""
    meter = Meter()
    reports = [meter.after(swing_s, 2.0 * (n % 2)) for n in range(int(3600 / swing_s))]
    seen = [load for load in reports if load is not None]

    assert max(abs(load - 1) for load in seen) < 0.15
    assert math.isclose(sum(seen) / len(seen), 1, rel_tol=0.05)
