"""Renews ownership records, up to 100 in one entity-group transaction, which is one request.

Rule 1: a transaction has only renewals: claims whose owner already owns the partition, as this
store last saw it. A steal is likely to lose, and every renewal in its transaction would fail.
Rule 2: one failed condition fails the whole transaction. Then one listing shows which renewals
another processor made impossible, and the others are repeated in a new transaction.
Rule 3: after an attempt without an answer, too, the listing shows the outcomes, because each entity
has the id of its last write.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Final

from checkpointstores._requests import WriteAnswer, Written
from checkpointstores.tables._requests import EntityAnswer, answer_in
from checkpointstores.tables._table import TRANSACTION_MAX, Entity, Write
from eventproc._base.azure_storage.answers import ConditionFailedError
from eventproc._base.tasks import together
from eventproc.errors import StoreError
from eventproc.models import WriteOutcome

_ROUNDS: Final = 4
"""Most transactions for a renewal. In each failed one, another processor took at least one
partition; after the last one, the rest is written one by one."""

Transact = Callable[[Sequence[Write]], Coroutine[Any, Any, Sequence[Written | None]]]
ReadAll = Callable[[], Coroutine[Any, Any, Mapping[str, Entity]]]
WriteOne = Callable[[Write], Coroutine[Any, Any, EntityAnswer]]


async def renew(
    writes: Mapping[str, Write], transact: Transact, read_all: ReadAll, write_one: WriteOne
) -> dict[str, EntityAnswer]:
    """Make these writes, and return their outcomes; both by partition id.

    Args:
        writes: At most one for each entity.
        transact: Makes some of them together; raises ``ConditionFailedError`` or ``StoreError``.
        read_all: Returns the ownership entities of the group, by partition id.
        write_one: Makes one write by itself.
    """
    answers: dict[str, EntityAnswer] = {}
    for _ in range(_ROUNDS):
        pending = {key: write for key, write in writes.items() if key not in answers}
        errors = await together(
            *(_one_transaction(batch, transact, answers) for batch in _batches(pending))
        )
        pending = {key: write for key, write in writes.items() if key not in answers}
        if not pending:
            return answers
        error = next((error for error in errors if error is not None), None)
        answers |= await _listed_outcomes(pending, read_all, error)
    left = {key: write for key, write in writes.items() if key not in answers}
    alone = await together(*(write_one(write) for write in left.values()))
    return answers | dict(zip(left, alone, strict=True))


async def _one_transaction(
    batch: Mapping[str, Write], transact: Transact, answers: dict[str, EntityAnswer]
) -> StoreError | None:
    """Make one transaction; return its error if it has no answer."""
    try:
        written = await transact(list(batch.values()))
    except ConditionFailedError:
        return None
    except StoreError as error:
        return error
    for key, version in zip(batch, written, strict=True):
        if version is not None:
            answers[key] = WriteAnswer(WriteOutcome.WON, version)
    return None


async def _listed_outcomes(
    pending: Mapping[str, Write], read_all: ReadAll, error: StoreError | None
) -> dict[str, EntityAnswer]:
    """Return the outcomes that a listing shows; those it does not show are unknown if *error*."""
    try:
        stored = await read_all()
    except StoreError as failure:
        return {key: WriteAnswer(WriteOutcome.UNKNOWN, error=failure) for key in pending}
    answers = {}
    for key, write in pending.items():
        found = stored.get(key)
        answer = answer_in(write, found)
        if answer.outcome is WriteOutcome.LOST and found is not None and found.etag == write.etag:
            if error is None:
                continue  # Another write of its transaction failed: repeat this one.
            answer = WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        answers[key] = answer
    return answers


def _batches(writes: Mapping[str, Write]) -> Iterator[dict[str, Write]]:
    pairs = list(writes.items())
    for at in range(0, len(pairs), TRANSACTION_MAX):
        yield dict(pairs[at : at + TRANSACTION_MAX])
