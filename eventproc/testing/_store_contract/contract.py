"""The contract of the ``CheckpointStore`` port, as an executable suite.

Every store of the library passes it, and a processor works with any store that does. It needs no
test framework, and raises ``AssertionError`` with the requirement that is not met.
"""

from collections.abc import Callable, Sequence
from typing import Final

from eventproc.ports import CheckpointStore
from eventproc.testing._clauses import ClauseReport, clauses_of, run_clauses
from eventproc.testing._store_contract import (
    answers,
    checkpoints,
    concurrency,
    group_records,
    members,
    ownership,
)
from eventproc.testing._store_contract.bench import Bench, LoseAnswers

_PLAIN: Final = clauses_of(ownership, checkpoints, members, group_records, concurrency)
_WITH_LOST_ANSWERS: Final = clauses_of(answers)


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
    async with make_store() as store, make_store() as other:
        bench = Bench(
            store=store, other=other, lose_answers=lose_answers, records=records, rounds=rounds
        )
        clauses = dict.fromkeys(_PLAIN, True)
        clauses |= dict.fromkeys(_WITH_LOST_ANSWERS, lose_answers is not None)
        return await run_clauses(clauses, lambda: bench, only=only, on_clause=on_clause)


def clause_names() -> Sequence[str]:
    """The names of all clauses, in the order in which they run."""
    return [clause.__name__ for clause in (*_PLAIN, *_WITH_LOST_ANSWERS)]
