"""The contract of ``EventSource`` and ``QueueSource``, as an executable suite.

Every source of the library passes it, and a processor works with any source that does. It needs no
test framework, and raises ``AssertionError`` with the requirement that is not met.
"""

from collections.abc import Callable, Sequence

from eventproc.ports import QueueSource
from eventproc.testing._clauses import ClauseReport, clauses_of, run_clauses
from eventproc.testing._source_contract import every_source, logs, queues
from eventproc.testing._source_contract.bench import SourceBench


async def check_event_source(
    make_bench: Callable[[], SourceBench],
    *,
    only: str | None = None,
    on_clause: Callable[[ClauseReport], None] | None = None,
) -> Sequence[ClauseReport]:
    """Check that a source meets every requirement of its port.

    Args:
        make_bench: Returns a hub with sources that read it; called for each clause. It may be the
            same hub each time, unless the sources are ``QueueSource``: then its queues are empty.
        only: Run just the clause of this name.
        on_clause: Called after each clause, to report progress.

    Returns:
        One report for each clause, in the order in which they ran. Clauses for logs are skipped
        for queues, and the other way round.

    Raises:
        AssertionError: A requirement is not met; the message begins with the clause's name.
    """
    is_queue = isinstance(make_bench().source(), QueueSource)
    clauses = dict.fromkeys(clauses_of(every_source), True)
    clauses |= dict.fromkeys(clauses_of(logs), not is_queue)
    clauses |= dict.fromkeys(clauses_of(queues), is_queue)
    return await run_clauses(clauses, make_bench, only=only, on_clause=on_clause)


def source_clause_names() -> Sequence[str]:
    """The names of all clauses, in the order in which they run."""
    return [clause.__name__ for clause in clauses_of(every_source, logs, queues)]
