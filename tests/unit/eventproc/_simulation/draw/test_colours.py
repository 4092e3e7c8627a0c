"""Colours of processors, as people with any kind of colour vision see them."""

from itertools import combinations
from math import dist

import pytest

from eventproc._simulation.draw.picture import PALETTE, colour_of

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
