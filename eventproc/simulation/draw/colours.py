"""Colours and stripes of processors in a plot. Pure.

The colours can be told apart with every common kind of colour blindness: they are those of
M. Okabe and K. Ito (https://jfly.uni-koeln.de/color/), with a grey in place of their black, which
stands for partitions that no processor serves. Where there are more processors than colours, the
later ones are lighter or darker, and then striped.
"""

from dataclasses import dataclass
from typing import Final

Rgb = tuple[float, float, float]
"""Red, green and blue, each from 0 to 1."""

PALETTE: Final[tuple[Rgb, ...]] = (
    (0.337, 0.706, 0.914),
    (0.902, 0.624, 0.000),
    (0.000, 0.620, 0.451),
    (0.800, 0.475, 0.655),
    (0.941, 0.894, 0.259),
    (0.000, 0.447, 0.698),
    (0.835, 0.369, 0.000),
    (0.780, 0.780, 0.780),
)
WHITE: Final[Rgb] = (1.0, 1.0, 1.0)
BLACK: Final[Rgb] = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """What the partitions of one processor are filled with."""

    colour: Rgb
    is_striped: bool = False
    """Whether it has thin white stripes."""


def pattern_of(number: int) -> Pattern:
    """Return the pattern of a processor, by its number in the order of the first start, from 0.

    48 processors have different patterns; then they repeat.
    """
    colour = PALETTE[number % len(PALETTE)]
    shade = number // len(PALETTE) % 6
    if shade % 3 == 1:
        colour = _mixed(colour, WHITE, 0.5)
    elif shade % 3 == 2:  # noqa: PLR2004 - the last of three shades
        colour = _mixed(colour, BLACK, 0.4)
    return Pattern(colour=colour, is_striped=shade > 2)  # noqa: PLR2004 - the second three


def _mixed(colour: Rgb, other: Rgb, part: float) -> Rgb:
    red, green, blue = (a + (b - a) * part for a, b in zip(colour, other, strict=True))
    return red, green, blue
