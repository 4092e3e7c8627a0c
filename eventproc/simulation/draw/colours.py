"""Colours of processors in a plot. Pure.

The colours can be told apart with every common kind of colour blindness: they are those of
M. Okabe and K. Ito (https://jfly.uni-koeln.de/color/), with a grey in place of their black, which
stands for partitions that no processor serves. Where there are more processors than colours, the
later ones are lighter or darker.
"""

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


def colour_of(number: int) -> Rgb:
    """Return the colour of a processor, by its number in the order of the first start, from 0.

    24 processors have different colours; then they repeat.
    """
    colour = PALETTE[number % len(PALETTE)]
    match number // len(PALETTE) % 3:
        case 1:
            return _mixed(colour, WHITE, 0.5)
        case 2:
            return _mixed(colour, BLACK, 0.4)
        case _:
            return colour


def _mixed(colour: Rgb, other: Rgb, part: float) -> Rgb:
    red, green, blue = (a + (b - a) * part for a, b in zip(colour, other, strict=True))
    return red, green, blue
