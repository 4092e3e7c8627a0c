"""The fixture of the store contract's clauses: two stores over the same data, and new groups.

A clause is a coroutine function; its docstring is the requirement that it checks. The contract does
not need pytest, so that it can run in any test framework.
"""

import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TypeVar

from eventproc.errors import StoreError
from eventproc.models import (
    NOT_BEGUN,
    Checkpoint,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    Isolation,
    OwnershipClaim,
    PartitionOwnership,
    SequenceRange,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore
from eventproc.testing._clauses import require

T = TypeVar("T")

LoseAnswers = Callable[[int | None], AbstractAsyncContextManager[None]]
"""``async with lose_answers(n):`` - the store's backend carries out the next *n* requests, and
their answers are lost. ``None``: all answers are lost while the block runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The stores and settings that one clause works with."""

    store: CheckpointStore
    other: CheckpointStore
    """A second store over the same data: another process."""

    lose_answers: LoseAnswers | None
    records: int
    """Number of records that the paging clauses write."""

    rounds: int
    """Number of rounds of each race."""

    def new_group(self, name: str | None = None) -> ConsumerGroup:
        """Return a new group, so that clauses do not share records."""
        return ConsumerGroup(
            fully_qualified_namespace=f"{uuid.uuid4().hex}.servicebus.windows.net",
            eventhub_name="hub",
            name=name or "$Default",
        )


def require_won(outcome: WriteOutcome, sentence: str, error: StoreError | None = None) -> None:
    """Raise ``AssertionError`` with *sentence*, and the outcome of a write that was not won."""
    why = f" ({error})" if error else ""
    require(outcome is WriteOutcome.WON, f"{sentence}: it is {outcome.value}{why}")


def require_lost(outcome: WriteOutcome, sentence: str) -> None:
    """Raise ``AssertionError`` with *sentence* and the outcome of a write that was not lost."""
    require(outcome is WriteOutcome.LOST, f"{sentence}: it is {outcome.value}")


def require_present(found: T | None, sentence: str) -> T:
    """Return what was found; raise ``AssertionError`` with *sentence* if it is ``None``."""
    require(found is not None, sentence)
    assert found is not None
    return found


async def claim_one(
    store: CheckpointStore,
    group: ConsumerGroup,
    partition_id: str,
    owner_id: str | None,
    expected_etag: str | None,
) -> ClaimResult:
    """Make one claim and return its result."""
    claim = OwnershipClaim(
        partition_id=partition_id, owner_id=owner_id, expected_etag=expected_etag
    )
    results = await store.claim_ownership(group, [claim])
    require(len(results) == 1, f"one claim must have one result, it has {len(results)}")
    require(results[0].claim == claim, "a result must carry the claim that it belongs to")
    return results[0]


async def own(
    store: CheckpointStore,
    group: ConsumerGroup,
    partition_id: str,
    owner_id: str | None,
    expected_etag: str | None = None,
) -> PartitionOwnership:
    """Make a claim that must win, and return the record."""
    result = await claim_one(store, group, partition_id, owner_id, expected_etag)
    require_won(result.outcome, "a claim on the etag that was read must be won", result.error)
    record = require_present(result.ownership, "a won claim must come with the record as stored")
    require(
        (record.partition_id, record.owner_id) == (partition_id, owner_id),
        f"a won claim must name partition and owner as claimed, not {record}",
    )
    return record


async def owners(store: CheckpointStore, group: ConsumerGroup) -> dict[str, PartitionOwnership]:
    """List the group's ownership by partition, each partition at most once."""
    snapshot = await store.list_ownership(group)
    by_partition = {record.partition_id: record for record in snapshot.ownerships}
    require(
        len(by_partition) == len(snapshot.ownerships),
        "a listing must name each partition once",
    )
    return by_partition


def update_of(
    sequence_number: int,
    replaces: Checkpoint | None,
    *,
    partition_id: str = "0",
    writer: str = "pump-a",
    state: bytes | None = None,
    offset: str | None = None,
    is_reset: bool = False,
    completed: Sequence[SequenceRange] = (),
    isolation: Isolation = NOT_BEGUN,
) -> CheckpointUpdate:
    """Build an update, with defaults for what a clause does not test."""
    return CheckpointUpdate(
        partition_id=partition_id,
        offset=offset or str(sequence_number * 100),
        sequence_number=sequence_number,
        replaces=replaces,
        writer=writer,
        state=state,
        is_reset=is_reset,
        completed=tuple(completed),
        isolation=isolation,
    )


async def store_checkpoint(
    store: CheckpointStore, group: ConsumerGroup, update: CheckpointUpdate
) -> Checkpoint:
    """Write a checkpoint that must win, and return it as stored."""
    result = await store.update_checkpoint(group, update)
    require_won(
        result.outcome,
        "a checkpoint that replaces the one that is stored must be won",
        result.error,
    )
    stored = require_present(result.checkpoint, "a won update must come with the stored checkpoint")
    require(
        (stored.partition_id, stored.offset, stored.sequence_number)
        == (update.partition_id, update.offset, update.sequence_number),
        f"a won update must return the position as written, not {stored}",
    )
    return stored


async def read_back(
    store: CheckpointStore, group: ConsumerGroup, partition_id: str = "0"
) -> Checkpoint:
    """Read a checkpoint that must exist."""
    checkpoint = await store.read_checkpoint(group, partition_id)
    return require_present(checkpoint, "a stored checkpoint must be found")
