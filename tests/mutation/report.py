"""The table of guards in ``docs/guarantees.md``: made here, between two marks, never by hand."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.mutation.guard import ROOT, Guard
from tests.mutation.workshop import Verdict

PAGE: Final = ROOT / "docs/guarantees.md"
BEGIN: Final = "<!-- guards: made by `make mutants` -->"
END: Final = "<!-- end of guards -->"


def table(guards_by_part: Mapping[str, Sequence[Guard]], verdicts: Iterable[Verdict]) -> str:
    """One Markdown table for each part of the project."""
    verdict_by_name = {verdict.guard.name: verdict for verdict in verdicts}
    lines = []
    for part, guards in guards_by_part.items():
        lines += [
            f"### {part}",
            "",
            "| guard | without it | first test that fails | seeds |",
            "|---|---|---|---|",
            *(_row(guard, verdict_by_name.get(guard.name)) for guard in guards),
            "",
        ]
    return "\n".join(lines)


def _row(guard: Guard, verdict: Verdict | None) -> str:
    killer, seeds = "not judged yet", "-"
    if verdict is not None:
        killer = "**none**" if verdict.killer is None else f"`{_short(verdict.killer)}`"
    if verdict is not None and verdict.seeds_tried:
        seeds = str(verdict.seed_count or f"none of {verdict.seeds_tried}")
    return f"| {guard.name} (`{guard.file}`) | {guard.without_it} | {killer} | {seeds} |"


def _short(node_id: str) -> str:
    """A test's file and name; which of its cases it was matters to nobody who reads a table."""
    return node_id.split("[", maxsplit=1)[0].removeprefix("tests/")


def write(page: Path, made: str) -> None:
    """Put what was made between the marks of the page."""
    text = page.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{after}")
