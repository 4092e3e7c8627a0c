"""The contract of the ``CheckpointStore`` port, as an executable suite.

Every store of the library passes it, and a processor works with any store that does. It needs no
test framework, and raises ``AssertionError`` with the requirement that is not met.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from inspect import iscoroutinefunction, signature
from types import ModuleType
from typing import Final

from eventproc.ports import CheckpointStore
from eventproc.testing.store_contract import (
    answers,
    checkpoints,
    concurrency,
    group_records,
    members,
    ownership,
)
from eventproc.testing.store_contract.bench import Bench, Clause, LoseAnswers


def _clauses_of(*modules: ModuleType) -> list[Clause]:
    """Return the clauses in modules, in order: coroutine functions of *bench* only."""
    return [
        function
        for module in modules
        for function in vars(module).values()
        if iscoroutinefunction(function) and list(signature(function).parameters) == ["bench"]
    ]


_PLAIN: Final = _clauses_of(ownership, checkpoints, members, group_records, concurrency)
_WITH_LOST_ANSWERS: Final = _clauses_of(answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseReport:
    """One clause of the contract that was run, or skipped."""

    name: str
    promise: str
    """What the clause checks, in one sentence."""

    took: timedelta | None
    """``None`` for a clause that was skipped, because it needs ``lose_answers``."""


async def check_checkpoint_store(
    make_store: Callable[[], CheckpointStore],
    *,
    lose_answers: LoseAnswers | None = None,
    records: int = 5_001,
    rounds: int = 25,
    only: str | None = None,
    on_clause: Callable[[ClauseReport], None] | None = None,
) -> Sequence[ClauseReport]:
    """Check that a store meets every requirement of the port.

    Args:
        make_store: Returns a new, unopened store each time. All of them must use the same data:
            two of them act as two processes. The suite opens and closes them, and uses groups
            with random names, so the data need not be empty.
        lose_answers: Makes the backend carry out requests and lose their answers; see
            ``LoseAnswers``. Without it the clauses on lost answers are skipped, which is right
            only for a store that never repeats a request.
        records: How many records the clause on long listings writes; the default goes beyond
            the largest page of blob storage.
        rounds: How often each race is run.
        only: Run just the clause of this name.
        on_clause: Called after each clause, to report progress.

    Returns:
        One report for each clause, in the order in which they ran.

    Raises:
        AssertionError: A requirement is not met; the message begins with the clause's name.
    """
    reports = []
    async with make_store() as store, make_store() as other:
        bench = Bench(
            store=store, other=other, lose_answers=lose_answers, records=records, rounds=rounds
        )
        for clause in (*_PLAIN, *_WITH_LOST_ANSWERS):
            name, promise = _named(clause)
            if only not in {None, name}:
                continue
            is_left_out = clause in _WITH_LOST_ANSWERS and lose_answers is None
            began = time.perf_counter()
            if not is_left_out:
                await _run(name, clause, bench)
            took = None if is_left_out else timedelta(seconds=time.perf_counter() - began)
            reports.append(ClauseReport(name=name, promise=promise, took=took))
            if on_clause is not None:
                on_clause(reports[-1])
    if not reports:
        raise ValueError(f"the contract has no clause named {only!r}; it has {clause_names()}")
    return reports


def clause_names() -> Sequence[str]:
    """The names of all clauses, in the order in which they run."""
    return [_named(clause)[0] for clause in (*_PLAIN, *_WITH_LOST_ANSWERS)]


def _named(clause: Clause) -> tuple[str, str]:
    return clause.__name__, (clause.__doc__ or "").strip()


async def _run(name: str, clause: Clause, bench: Bench) -> None:
    try:
        await clause(bench)
    except Exception as error:
        raise AssertionError(f"{name}: {error}") from error
