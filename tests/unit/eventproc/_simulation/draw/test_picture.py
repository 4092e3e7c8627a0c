"""What a plot shows: which processor serves which partition at each moment, in which colour."""

from itertools import combinations
from math import dist

import pytest

from eventproc import ConfigurationError
from eventproc._core.placement.placement import MemberFacts
from eventproc._simulation.draw.picture import PALETTE, colour_of, levels, per_minute, rows_of
from eventproc._simulation.history import (
    Change,
    Count,
    History,
    Listing,
    Membership,
    ScriptEvent,
    Service,
)
from eventproc._simulation.report import report_of


def history_of_a_crash() -> History:
    """A owns partitions 1 and 2, B owns 0; A crashes at 60 s and B claims one of them at 90 s."""
    ids = ("0", "1", "2")
    return History(
        duration_s=120,
        script_events=[ScriptEvent(at_s=0, name="start:2"), ScriptEvent(at_s=60, name="crash:1")],
        memberships=[
            Membership(at_s=0, members={"A": MemberFacts(), "B": MemberFacts()}, partition_ids=ids),
            Membership(at_s=60, members={"B": MemberFacts()}, partition_ids=ids),
        ],
        services=[
            Service(at_s=0, owner_id="A", is_up=True),
            Service(at_s=0, owner_id="B", is_up=True),
            Service(at_s=60, owner_id="A", is_up=False),
        ],
        changes=[
            Change(at_s=1, partition_id="0", owner_id="B"),
            Change(at_s=1, partition_id="1", owner_id="A"),
            Change(at_s=1, partition_id="2", owner_id="A"),
            Change(at_s=90, partition_id="1", owner_id="B"),
        ],
        listings=[Listing(at_s=30, owner_id="A", is_ownership=True)],
        writes=[Count(at_s=1, count=3), Count(at_s=90, count=1)],
    )


def spans_of(row):
    """Return a row's spans as plain values."""
    return [(x.begin_s, x.end_s, x.owner_id) for x in row.spans]


def test_partitions_of_a_crashed_owner_are_not_served():
    """Until another owner takes over."""
    rows = {row.partition_id: spans_of(row) for row in rows_of(history_of_a_crash())}

    assert rows["0"] == [(0, 1, None), (1, 120, "B")]
    assert rows["1"] == [(0, 1, None), (1, 60, "A"), (60, 90, None), (90, 120, "B")]
    assert rows["2"] == [(0, 1, None), (1, 60, "A"), (60, 120, None)]


def test_partitions_of_an_owner_that_restarts_are_served_again():
    """Under the same name, without any write."""
    history = history_of_a_crash()
    history.services.append(Service(at_s=65, owner_id="A", is_up=True))
    rows = {row.partition_id: spans_of(row) for row in rows_of(history)}

    assert rows["2"] == [(0, 1, None), (1, 60, "A"), (60, 65, None), (65, 120, "A")]


def test_partitions_are_grouped_by_their_first_owner():
    """So partitions that moved to a new processor show as stripes."""
    assert [row.partition_id for row in rows_of(history_of_a_crash())] == ["1", "2", "0"]


def test_operations_are_counted_per_minute():
    """Two bins of a minute each."""
    history = history_of_a_crash()

    assert per_minute(history.writes, 120, 2) == [3, 1]
    assert per_minute(history.listings, 120, 4) == [0, 2, 0, 0]


def test_captions_that_would_overlap_get_different_levels():
    """The lowest free level; if none is free, the one that was free first."""
    assert levels([0, 0.1, 0.2, 0.6, 0.65], [0.25] * 5, 2) == [0, 1, 0, 0, 1]
    assert levels([0.0, 0.5], [0.5, 0.5], 3) == [0, 0]


@pytest.mark.parametrize(("suffix", "head"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_a_history_is_drawn(tmp_path, suffix, head):
    """In either format."""
    # It needs matplotlib, which would take a second of every collection.
    from eventproc._simulation.draw.plot import draw  # noqa: PLC0415

    history = history_of_a_crash()
    draw(history, report_of(history), "a title", tmp_path / f"one{suffix}")

    assert (tmp_path / f"one{suffix}").read_bytes().startswith(head)


@pytest.mark.parametrize("name", ["plot.gif", "no/such/folder/plot.png"])
def test_a_file_that_cannot_be_written_is_refused(tmp_path, name):
    """Before anything is simulated."""
    from eventproc._simulation.draw.plot import check_path  # noqa: PLC0415 - as above

    with pytest.raises(ConfigurationError, match="plot"):
        check_path(tmp_path / name)


# How colours appear without one kind of cones, as factors of linear red, green and blue:
# G. Machado, M. Oliveira, L. Fernandes, "A Physiologically-based Model for Simulation of Color
# Vision Deficiency" (2009), severity 1.0.
VISION = {
    "common": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.089)

APART = 9.0
"""CIE 1976: a difference of about 2.3 is just noticeable."""


def linear(value):
    """Return a component of sRGB in linear light."""
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def times(matrix, vector):
    """Return the product."""
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def lab(rgb, vision):
    """Return a colour as it is seen, in the space CIE L*a*b*."""
    seen = [min(1.0, max(0.0, c)) for c in times(vision, [linear(value) for value in rgb])]
    ratios = [c / white for c, white in zip(times(XYZ, seen), WHITE, strict=True)]
    x, y, z = (r ** (1 / 3) if r > 0.008856 else 7.787 * r + 16 / 116 for r in ratios)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("name", VISION)
def test_any_two_colours_differ_visibly(name):
    """Black, for partitions that are not served, as well."""
    colours = [*PALETTE, (0.07, 0.07, 0.07)]

    for one, other in combinations(colours, 2):
        assert dist(lab(one, VISION[name]), lab(other, VISION[name])) > APART


def test_twenty_four_processors_have_different_colours():
    """Later ones are lighter or darker, so no two are equal."""
    assert len({colour_of(number) for number in range(24)}) == 24
    assert colour_of(24) == colour_of(0)
