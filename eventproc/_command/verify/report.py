"""The report: every check with its result, without the names and keys of what was checked."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final

from eventproc._base.version import __version__
from eventproc._command.terminal.exits import FAILED, OK
from eventproc._command.verify.run import Finding, Result

_HIDDEN: Final = "<name>"
_SERIAL: Final = re.compile(r"[0-9a-f]{32}")


def report_of(findings: Sequence[Finding], names: Collection[str], *, service: str) -> str:
    """Return the report as Markdown, with what differs first.

    Args:
        findings: Of all checks.
        names: What must not occur in it: of namespace, hub, account and container.
        service: What was checked, such as ``the emulator``.
    """
    day = datetime.now(UTC).date()
    lines = [f"# eventproc verify: {service}", "", f"eventproc {__version__}, {day}.", ""]
    lines += [f"- {count} {result.value}" for result, count in counted(findings).items()]
    lines += ["", "| service | check | result | relied on by | details |", "|---|---|---|---|---|"]
    for each in sorted(findings, key=lambda each: [*Result].index(each.result)):
        cells = (each.service, each.check.promise, each.result.value, each.check.relied_on_by)
        lines.append("| " + " | ".join(map(_cell, (*cells, hidden(each.details, names)))) + " |")
    return "\n".join(lines) + "\n"


def counted(findings: Sequence[Finding]) -> dict[Result, int]:
    """Return how many checks have each result."""
    counts = Counter(each.result for each in findings)
    return {result: counts[result] for result in Result if counts[result]}


def exit_code_of(findings: Sequence[Finding]) -> int:
    """Return 1 if something differs from what we assume, else 0."""
    return FAILED if Result.DIFFERS in counted(findings) else OK


def hidden(text: str, names: Collection[str]) -> str:
    """Return a text without names, also without the first labels of hosts."""
    labels = {name.partition(".")[0] for name in names if not name.partition(".")[0].isdigit()}
    for name in sorted(filter(None, {*names, *labels}), key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", _HIDDEN, text, flags=re.IGNORECASE)
    return _SERIAL.sub(_HIDDEN, text)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
