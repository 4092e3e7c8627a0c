"""The report of ``make mutants``: a Markdown file with one table for each part of the project."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.mutation.guard import ROOT, Guard
from tests.mutation.verdict import ByTests, ByWorlds
from tests.mutation.verdict_file import VerdictFile

FILE: Final = ROOT / ".tools/mutants/report.md"


def table(guards_by_part: Mapping[str, Sequence[Guard]], verdicts: VerdictFile) -> str:
    """Return a summary, then a Markdown table for each part of the project."""
    lines = [
        "# Guards, removed in turn",
        "",
        _summary([g for guards in guards_by_part.values() for g in guards], verdicts),
        "",
    ]
    for part, guards in guards_by_part.items():
        lines += [
            f"## {part}",
            "",
            "| guard | without it | first test that fails | simulated world |",
            "|---|---|---|---|",
            *(_row(guard, verdicts) for guard in guards),
            "",
        ]
    return "\n".join(lines)


def _summary(guards: Sequence[Guard], verdicts: VerdictFile) -> str:
    results = [verdicts.verdict(guard) for guard in guards]
    killed = sum(verdict.is_killed for verdict in results)
    by_tests = sum(v.tests is not None and v.tests.killer is not None for v in results)
    simulated = sum(guard.is_simulated for guard in guards)
    by_worlds = sum(v.worlds is not None and v.worlds.is_killed for v in results)
    commits = Counter(commit for guard in guards for commit in verdicts.commits(guard))
    judged_at = ", ".join(f"`{commit}`" for commit, _ in commits.most_common())
    return (
        f"Of {len(guards)} removed guards {killed} are noticed: {by_tests} by a named test, "
        f"and {by_worlds} of the {simulated} that the simulation contains by a simulated world. "
        f"Tried at {judged_at or 'no commit yet'}."
    )


def _row(guard: Guard, verdicts: VerdictFile) -> str:
    verdict = verdicts.verdict(guard)
    tests = _by_tests(verdict.tests)
    worlds = _by_worlds(verdict.worlds) if guard.is_simulated else "not simulated"
    return f"| {guard.name} (`{guard.file}`) | {guard.without_it} | {tests} | {worlds} |"


def _by_tests(result: ByTests | None) -> str:
    if result is None:
        return "not tried yet"
    if result.killer is not None:
        return f"`{_short(result.killer)}`"
    return "no result: a test hung, or fails without the mutation" if result.trouble else "**none**"


def _by_worlds(result: ByWorlds | None) -> str:
    if result is None:
        return "not tried yet"
    if result.is_killed:
        return f"`{result.suite}` {result.seed}"
    hung = "; some did not end" if result.trouble else ""
    return f"none of {result.seeds_tried} seeds{hung}"


def _short(node_id: str) -> str:
    """Return a test's file and name without its parameters."""
    return node_id.split("[", maxsplit=1)[0].removeprefix("tests/")


def write(report: str, file: Path = FILE) -> None:
    """Replace the report by a new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(report, "utf-8")
