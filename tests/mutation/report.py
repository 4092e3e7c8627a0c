"""The table of guards in ``docs/guarantees.md``: made here, between two marks, never by hand."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.mutation.guard import ROOT, Guard
from tests.mutation.memory import Memory
from tests.mutation.verdict import ByTests, ByWorlds

PAGE: Final = ROOT / "docs/guarantees.md"
BEGIN: Final = "<!-- guards: made by `make mutants` -->"
END: Final = "<!-- end of guards -->"


def table(guards_by_part: Mapping[str, Sequence[Guard]], memory: Memory) -> str:
    """What was found in short, then one Markdown table for each part of the project."""
    lines = [_summary([g for guards in guards_by_part.values() for g in guards], memory), ""]
    for part, guards in guards_by_part.items():
        lines += [
            f"### {part}",
            "",
            "| guard | without it | first test that fails | simulated world |",
            "|---|---|---|---|",
            *(_row(guard, memory) for guard in guards),
            "",
        ]
    return "\n".join(lines)


def _summary(guards: Sequence[Guard], memory: Memory) -> str:
    verdicts = [memory.verdict(guard) for guard in guards]
    killed = sum(verdict.is_killed for verdict in verdicts)
    by_tests = sum(v.tests is not None and v.tests.killer is not None for v in verdicts)
    simulated = sum(guard.is_simulated for guard in guards)
    by_worlds = sum(v.worlds is not None and v.worlds.is_killed for v in verdicts)
    commits = Counter(commit for guard in guards for commit in memory.commits(guard))
    judged_at = ", ".join(f"`{commit}`" for commit, _ in commits.most_common())
    return (
        f"Of {len(guards)} guards {killed} are missed: {by_tests} by a named test, and "
        f"{by_worlds} of the {simulated} that the simulated world contains by a world. "
        f"Judged at {judged_at or 'no commit yet'}, by `make mutants ARGS=--simulation`."
    )


def _row(guard: Guard, memory: Memory) -> str:
    verdict = memory.verdict(guard)
    tests = _by_tests(verdict.tests)
    worlds = _by_worlds(verdict.worlds) if guard.is_simulated else "not in it"
    return f"| {guard.name} (`{guard.file}`) | {guard.without_it} | {tests} | {worlds} |"


def _by_tests(said: ByTests | None) -> str:
    if said is None:
        return "not judged yet"
    if said.killer is not None:
        return f"`{_short(said.killer)}`"
    return "not judged: a test hung or failed by itself" if said.trouble else "**none**"


def _by_worlds(said: ByWorlds | None) -> str:
    if said is None:
        return "not judged yet"
    if said.is_killed:
        return f"`{said.suite}` {said.seed}"
    hung = "; some never ended" if said.trouble else ""
    return f"none of {said.seeds_tried} seeds{hung}"


def _short(node_id: str) -> str:
    """A test's file and name; which of its cases it was matters to nobody who reads a table."""
    return node_id.split("[", maxsplit=1)[0].removeprefix("tests/")


def write(page: Path, made: str) -> None:
    """Put what was made between the marks of the page."""
    text = page.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{after}")
