"""The contract of ``EventSource``, checked for every source of a log; ``conftest.py`` has them."""

import pytest

from eventproc.testing import check_event_source, source_clause_names
from eventproc.testing._clauses import clauses_of
from eventproc.testing._source_contract import queues

OF_QUEUES = [clause.__name__ for clause in clauses_of(queues)]


@pytest.mark.parametrize("clause", [n for n in source_clause_names() if n not in OF_QUEUES])
async def test_a_source_meets_each_clause_of_the_contract(clause, bench):
    """Each clause is stated by the name of its function."""
    (report,) = await check_event_source(lambda: bench, only=clause)

    assert report.took is not None
