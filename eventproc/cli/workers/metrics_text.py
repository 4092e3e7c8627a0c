"""Metrics of several workers as one text, in the format that Prometheus reads."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_END: Final = "# EOF"
"""The last line of the form called OpenMetrics."""


@dataclass(slots=True)
class _Family:
    """A metric: all its lines have to be together."""

    comments: dict[str, str] = field(default_factory=dict)
    """Help, type and unit, by their kind: once for all workers."""

    samples: list[str] = field(default_factory=list)


def merged(text_by_worker: Mapping[int, str]) -> str:
    """Return one text in which each sample has a label ``worker`` with its worker's number."""
    families: dict[str, _Family] = {}
    has_end = False
    for number, text in text_by_worker.items():
        metric = ""
        for line in text.splitlines():
            kind, name = _comment(line)
            if kind:
                metric = name
                families.setdefault(name, _Family()).comments.setdefault(kind, line)
            elif line.startswith("#"):
                has_end |= line == _END
            elif line:
                # A histogram's samples have its name and an ending.
                if not metric or not _name(line).startswith(metric):
                    metric = _name(line)
                families.setdefault(metric, _Family()).samples.append(_labelled(line, number))
    lines = [line for family in families.values() for line in _lines(family)]
    return "".join(f"{line}\n" for line in [*lines, *([_END] if has_end else [])])


def _lines(family: _Family) -> Iterator[str]:
    yield from family.comments.values()
    yield from family.samples


def _comment(line: str) -> tuple[str, str]:
    """Return kind and metric of a line about a metric; empty for every other line."""
    words: Iterable[str] = line.split(" ", 3)
    match list(words):
        case ["#", "HELP" | "TYPE" | "UNIT" as kind, name, *_]:
            return kind, name
        case _:
            return "", ""


def _name(sample: str) -> str:
    return sample.partition("{")[0].partition(" ")[0]


def _labelled(sample: str, number: int) -> str:
    """Return the sample with a label more."""
    name = _name(sample)
    rest = sample[len(name) :]
    label = f'worker="{number}"'
    if not rest.startswith("{"):
        return f"{name}{{{label}}}{rest}"
    others = rest[1:]
    return f"{name}{{{label}{'' if others.startswith('}') else ','}{others}"
