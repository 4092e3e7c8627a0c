"""The verbs of ``eventproc store``: set a store up, and check that it can be used."""

import asyncio
import time
from datetime import UTC, datetime
from statistics import median
from typing import Final

from eventproc.cli.arguments.address import StoreAddress
from eventproc.cli.terminal.exits import OK
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore

_READS: Final = 5

_GROUP: Final = ConsumerGroup.of_resources("eventproc-store-check")
"""A group without members: only its empty listing is read."""


def init(*, address: StoreAddress) -> int:
    """Create or update a store: SQLite file, blob container, Azure table, tables in PostgreSQL.

    It also creates the container for dead letters: --store blob:dead-letters. Repeating it is
    harmless. In PostgreSQL it needs a role that may create a schema in the database, or owns the
    schema; processors need only the rights to read and write its tables.

    Exit codes: 0 the store is ready, 2 it cannot be set up like this, 3 it did not answer.
    """
    return asyncio.run(_open(address.checkpoint_store(creates=True)))


def check(*, address: StoreAddress) -> int:
    """Check that the store can be reached and used, and measure how fast it answers.

    It writes no record of a group.

    Exit codes: 0 it can be used, 2 it cannot be used like this, 3 it did not answer.
    """
    return asyncio.run(_open(address.checkpoint_store(must_exist=True)))


async def _open(store: CheckpointStore) -> int:
    async with store:
        took_s, ahead_s = [], 0.0
        for _ in range(_READS):
            begun_s = time.perf_counter()
            snapshot = await store.list_members(_GROUP)
            took_s.append(time.perf_counter() - begun_s)
            ahead_s = (snapshot.as_of - datetime.now(UTC)).total_seconds()
        print(
            f"{store}: ready, answers in {median(took_s) * 1000:.1f} ms; its clock differs by "
            f"{round(ahead_s, 1) + 0.0:+.1f} s from this machine's, which no decision depends on"
        )
    return OK
