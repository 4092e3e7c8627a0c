"""The diagrams are those of their text."""

import runpy


def test_every_diagram_is_drawn_from_its_text(root):
    """A change of the text, or of the program that draws, is followed by ``make diagrams``."""
    folder = root / "docs/diagrams"
    drawn = runpy.run_path(str(folder / "draw.py"))["drawn"]
    sources = sorted(folder.glob("*.toml"))
    stale = [
        source.stem
        for source in sources
        if drawn(source.read_text("utf-8"))
        != (root / f"docs/images/{source.stem}.svg").read_text("utf-8")
    ]

    assert sources
    assert stale == []
