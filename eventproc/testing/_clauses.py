"""The clauses of a contract: how they are found, run and reported."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from inspect import iscoroutinefunction, signature
from types import ModuleType
from typing import Final, TypeVar

B = TypeVar("B")

CLAUSE_MAX: Final = timedelta(minutes=5)
"""No clause takes so long: a call that it made does not return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseReport:
    """One clause of a contract that was run, or skipped."""

    name: str
    promise: str
    """What the clause checks, in one sentence."""

    took: timedelta | None
    """``None`` for a clause that was skipped: what it needs was not given."""

    relied_on_by: str = ""
    """The module or the promise that relies on it, if the clause or its module names one."""

    reason: str = ""
    """Why it was skipped, if the clause says so."""


class SkippedError(Exception):
    """Raised by a clause that cannot be run here; the message says what it lacks."""


def require(condition: object, sentence: str) -> None:
    """Raise ``AssertionError`` with *sentence*, which says what should have been done."""
    if not condition:
        raise AssertionError(sentence)


def clauses_of(*modules: ModuleType) -> list[Callable[..., Awaitable[None]]]:
    """Return the clauses in modules, in order: coroutine functions of *bench* only."""
    return [
        function
        for module in modules
        for function in vars(module).values()
        if iscoroutinefunction(function) and list(signature(function).parameters) == ["bench"]
    ]


async def run_clauses(
    clauses: Mapping[Callable[[B], Awaitable[None]], bool],
    make_bench: Callable[[], B],
    *,
    only: str | None,
    on_clause: Callable[[ClauseReport], None] | None,
) -> Sequence[ClauseReport]:
    """Run clauses in order, and return a report of each.

    Args:
        clauses: Each clause, and whether it can be run; otherwise it is reported as skipped.
        make_bench: Returns what a clause works with; called for each.
        only: Run just the clause of this name.
        on_clause: Called after each clause.

    Raises:
        AssertionError: A clause is not met; the message begins with its name.
        ValueError: There is no clause named *only*.
    """
    reports = []
    for clause, can_run in clauses.items():
        if only not in {None, clause.__name__}:
            continue
        began, reason = time.perf_counter(), ""
        if can_run:
            try:
                await _run(clause, make_bench())
            except SkippedError as skipped:
                can_run, reason = False, str(skipped)  # noqa: PLW2901 - it cannot, it turned out
        took = timedelta(seconds=time.perf_counter() - began) if can_run else None
        reports.append(described(clause, took=took, reason=reason))
        if on_clause is not None:
            on_clause(reports[-1])
    if not reports:
        names = [clause.__name__ for clause in clauses]
        raise ValueError(f"the contract has no clause named {only!r}; it has {names}")
    return reports


async def _run(clause: Callable[[B], Awaitable[None]], bench: B) -> None:
    limit = asyncio.timeout(CLAUSE_MAX.total_seconds())
    try:
        async with limit:
            await clause(bench)
    except SkippedError:
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, AssertionError) else repr(error)
        if limit.expired():
            reason = f"not over after {CLAUSE_MAX}: a call does not return; the cause has it"
        raise AssertionError(f"{clause.__name__}: {reason}") from error


def described(
    clause: Callable[..., object], *, took: timedelta | None = None, reason: str = ""
) -> ClauseReport:
    """Return a report with what the clause says about itself, or its module about all of its own.

    A docstring may end in a paragraph ``Relied on by: ...``.
    """
    promise, relied_on_by = _parted(clause.__doc__)
    if not relied_on_by:
        relied_on_by = _parted(sys.modules[clause.__module__].__doc__)[1]
    return ClauseReport(
        name=clause.__name__, promise=promise, took=took, relied_on_by=relied_on_by, reason=reason
    )


def _parted(docstring: str | None) -> tuple[str, str]:
    text, _, relied_on_by = (docstring or "").partition("Relied on by:")
    return text.strip(), " ".join(relied_on_by.split())
