"""Draw the diagrams of the documentation: ``make diagrams`` makes an SVG of each TOML file here.

A diagram has boxes and arrows on a grid of ten pixels. Its panel has a colour of its own, so it can
be read on a light and on a dark page.

- ``size``: width and height; ``title``: what a screen reader says.
- ``[[box]]``: ``at`` and ``size``; ``text``, whose first line is bold unless ``plain``; ``chips``,
  small squares below the text, those with ``*`` marked; ``kind``, a key of ``KINDS``; ``name``,
  for arrows.
- ``[[arrow]]``: ``from`` and ``to``, names of boxes; ``text``; ``shift``, to draw it beside the
  middle.
"""

import sys
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

GRID = 10
LINE = 17
CHIP = 26
KINDS = {
    "panel": ("#ffffff", "#c5ccd6", ""),
    "process": ("#e3ecfb", "#3565b0", ""),
    "store": ("#e4f2e4", "#3b7d3b", ""),
    "outside": ("#fbf0dc", "#a8741a", ""),
    "part": ("#ffffff", "#3565b0", ""),
    "dead": ("#f3f3f3", "#a33a3a", "6 4"),
    "label": ("none", "none", ""),
}
"""Fill, stroke and dashes of each kind of box."""


def text(x: float, y: float, line: str, *, bold: bool = False, middle: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text x="{x:g}" y="{y:g}"{weight}{anchor}>{escape(line)}</text>'


def box(spec: dict[str, Any]) -> Iterator[str]:
    (x, y), (width, height) = ([value * GRID for value in spec[key]] for key in ("at", "size"))
    fill, stroke, dashes = KINDS[spec.get("kind", "part")]
    yield (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}" '
        f'stroke="{stroke}" stroke-dasharray="{dashes or "none"}"/>'
    )
    lines = spec.get("text", "").splitlines()
    for number, line in enumerate(lines):
        bold = number == 0 and not spec.get("plain", False)
        yield text(x + GRID, y + 20 + number * LINE, line, bold=bold)
    top = y + 12 + len(lines) * LINE
    for number, chip in enumerate(spec.get("chips", "").split()):
        left = x + GRID + number * (CHIP + 5)
        marked = chip.endswith("*")
        ownerless = spec.get("kind") == "dead"
        colour = "#ffffff" if ownerless else "#f2b53c" if marked else "#9fbdf0"
        yield (
            f'<rect x="{left:g}" y="{top:g}" width="{CHIP}" height="{CHIP}" rx="3" fill="{colour}" '
            f'stroke="{stroke}"/>'
        )
        yield text(left + CHIP / 2, top + 18, chip.rstrip("*"), middle=True)


def edge(spec: dict[str, Any], towards: tuple[float, float]) -> tuple[float, float]:
    """Return the point of a box's edge that is nearest to a point."""
    (x, y), (width, height) = ([value * GRID for value in spec[key]] for key in ("at", "size"))
    return min(max(towards[0], x), x + width), min(max(towards[1], y), y + height)


def centre(spec: dict[str, Any]) -> tuple[float, float]:
    (x, y), (width, height) = ([value * GRID for value in spec[key]] for key in ("at", "size"))
    return x + width / 2, y + height / 2


def arrow(spec: dict[str, Any], boxes: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Draw a straight arrow between the edges of two boxes, level or upright where they face."""
    first, last = boxes[spec["from"]], boxes[spec["to"]]
    smaller, larger = sorted((first, last), key=lambda each: each["size"][0] * each["size"][1])
    shift_x, shift_y = (value * GRID for value in spec.get("shift", (0, 0)))
    middle_x, middle_y = centre(smaller)
    towards = middle_x + shift_x, middle_y + shift_y
    on_larger = edge(larger, towards)
    on_smaller = edge(smaller, on_larger)
    start, end = (on_smaller, on_larger) if smaller is first else (on_larger, on_smaller)
    yield (
        f'<line x1="{start[0]:g}" y1="{start[1]:g}" x2="{end[0]:g}" y2="{end[1]:g}" '
        'stroke="#444c56" stroke-width="1.5" marker-end="url(#head)"/>'
    )
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    upright = abs(start[0] - end[0]) < abs(start[1] - end[1])
    for number, line in enumerate(spec.get("text", "").splitlines()):
        if upright:
            yield text(x + 8, y + 5 + number * LINE, line)
        else:
            yield text(x, y - 7 - number * LINE, line, middle=True)


def drawn(source: str) -> str:
    """Return the SVG of a diagram."""
    spec = tomllib.loads(source)
    width, height = (value * GRID for value in spec["size"])
    boxes = {each["name"]: each for each in spec["box"] if "name" in each}
    parts = [line for each in spec["box"] for line in box(each)]
    parts += [line for each in spec.get("arrow", ()) for line in arrow(each, boxes)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="#1f2328">\n'
        f"<title>{escape(spec['title'])}</title>\n"
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#444c56"/></marker></defs>\n'
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#f6f8fa"/>\n'
    )
    return head + "\n".join(parts) + "\n</svg>\n"


if __name__ == "__main__":
    here = Path(__file__).parent
    for file in sorted(here.glob("*.toml")):
        target = here.parent / "images" / f"{file.stem}.svg"
        target.write_text(drawn(file.read_text("utf-8")), "utf-8")
        sys.stdout.write(f"{target.name}\n")
