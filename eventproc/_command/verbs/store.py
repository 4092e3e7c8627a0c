"""The verbs of ``eventproc store``: set a store up, and check that it can be used."""

import time
from datetime import UTC, datetime
from statistics import median
from typing import Final
from uuid import uuid4

from eventproc._command.arguments.address import StoreAddress
from eventproc.errors import StoreRejectedError, StoreUnavailableError
from eventproc.models import ConsumerGroup, Member, WriteOutcome
from eventproc.ports import CheckpointStore

_READS: Final = 5

_GROUP: Final = ConsumerGroup.of_resources("eventproc-store-check")
"""A group without processors: only these verbs write to it."""


async def init(*, address: StoreAddress) -> None:
    """Create or update a store: SQLite file, blob container, Azure table, tables in PostgreSQL.

    It also creates the container for dead letters: --store blob:dead-letters. Repeating it is
    harmless. In PostgreSQL it needs a role that may create a schema in the database, or owns the
    schema; processors need only the rights to read and write its tables. Then it tries the store
    as `eventproc store check` does.

    Exit codes: 0 the store is ready, 2 it cannot be set up like this, 3 it did not answer.
    """
    await _try(address.checkpoint_store(creates=True))


async def check(*, address: StoreAddress) -> None:
    """Check that the store can be reached and used, and measure how fast it answers.

    It tries what a processor does: it creates the record of a member, in a group of its own, writes
    it again, and deletes it.

    Exit codes: 0 it can be used, 2 it cannot be used like this, 3 it did not answer.
    """
    await _try(address.checkpoint_store(must_exist=True))


async def _try(store: CheckpointStore) -> None:
    async with store:
        await _try_writes(store)
        took_s, ahead_s = [], 0.0
        for _ in range(_READS):
            begun_s = time.perf_counter()
            snapshot = await store.list_members(_GROUP)
            took_s.append(time.perf_counter() - begun_s)
            ahead_s = (snapshot.as_of - datetime.now(UTC)).total_seconds()
        print(
            f"{store}: ready, answers in {median(took_s) * 1000:.1f} ms; its clock differs by "
            f"{round(ahead_s, 1) + 0.0:+.1f} s from this machine's, on which no decision depends"
        )


async def _try_writes(store: CheckpointStore) -> None:
    """Create a record, write it on the condition of its version, and delete it."""
    written = Member(owner_id=f"check-{uuid4().hex}", incarnation="check")
    for _ in range(2):
        result = await store.announce_member(_GROUP, written)
        if result.member is None:
            raise result.error or StoreUnavailableError(f"{store}: a write had no effect")
        written = result.member
    if await store.withdraw_member(_GROUP, written) is WriteOutcome.WON:
        return
    members = (await store.list_members(_GROUP)).members
    if any(member.owner_id == written.owner_id for member in members):
        raise StoreRejectedError(
            f"{store}: the record of member {written.owner_id!r} in group {_GROUP.name!r} was "
            "written but not deleted: give the credential the right to delete, and delete that "
            "record"
        )
