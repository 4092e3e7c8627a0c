"""Random histories of calls on a store have the results of a simple model."""

import asyncio
import tempfile
import uuid
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from checkpointstores.memory import MemoryCheckpointStore
from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from checkpointstores.tables import TableCheckpointStore
from eventproc.models import (
    IN_BATCH,
    NOT_BEGUN,
    CheckpointUpdate,
    ConsumerGroup,
    OwnershipClaim,
    SequenceRange,
    WriteOutcome,
    alone,
)

GROUPS = [
    ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub", name=name)
    for name in ("$Default", "other")
]
groups = st.sampled_from(GROUPS)
partitions = st.sampled_from(["0", "1"])
processes = st.integers(0, 1)


class StoreMachine(RuleBasedStateMachine):
    """Two processes that read and write, sometimes with records that they read long ago.

    The model: for each record a list of all that was ever written. A write wins if the version that
    it replaces is the last entry.
    """

    def __init__(self):
        super().__init__()
        self.loop = asyncio.Runner()
        self.stores = self.make_stores()
        for store in self.stores:
            self.run_(store.open())
        self.owners = {}
        self.checkpoints = {}

    def make_stores(self):
        """Return two unopened stores over the same data."""
        raise NotImplementedError

    def run_(self, call):
        """Wait for a call of a store."""
        return self.loop.run(call)

    def teardown(self):
        """Close the stores."""
        for store in self.stores:
            self.run_(store.close())
        self.loop.close()

    @rule(
        process=processes,
        group=groups,
        partition_id=partitions,
        owner_id=st.sampled_from(["a", "b", None]),
        age=st.integers(0, 2),
    )
    def claim(self, process, group, partition_id, owner_id, age):
        """Claim with the latest ETag, or with an older one."""
        history = self.owners.setdefault((group, partition_id), [None])
        expected = history[-1 - min(age, len(history) - 1)]
        [result] = self.run_(
            self.stores[process].claim_ownership(
                group,
                [
                    OwnershipClaim(
                        partition_id=partition_id,
                        owner_id=owner_id,
                        expected_etag=expected and expected.etag,
                    )
                ],
            )
        )
        if expected is history[-1]:
            assert result.outcome is WriteOutcome.WON
            assert result.ownership.owner_id == owner_id
            history.append(result.ownership)
        else:
            assert result.outcome is WriteOutcome.LOST

    @rule(
        process=processes,
        group=groups,
        partition_id=partitions,
        step=st.integers(0, 3),
        state=st.sampled_from([None, b"", b"x", b"yy"]),
        done=st.lists(st.integers(1, 9), max_size=3, unique=True).map(sorted),
        isolation=st.sampled_from([NOT_BEGUN, IN_BATCH, alone(2)]),
        age=st.integers(0, 2),
    )
    def checkpoint(self, process, group, partition_id, step, state, done, isolation, age):
        """Replace the latest checkpoint, or an older one."""
        history = self.checkpoints.setdefault((group, partition_id), [None])
        replaces = history[-1 - min(age, len(history) - 1)]
        number = (replaces.sequence_number if replaces else 0) + step
        completed = tuple(SequenceRange(number + 2 * above, number + 2 * above) for above in done)
        result = self.run_(
            self.stores[process].update_checkpoint(
                group,
                CheckpointUpdate(
                    partition_id=partition_id,
                    offset=str(number),
                    sequence_number=number,
                    replaces=replaces,
                    writer=f"w{process}",
                    state=state,
                    completed=completed,
                    isolation=isolation,
                ),
            )
        )
        if replaces is not history[-1]:
            assert result.outcome is WriteOutcome.LOST
            return
        assert result.outcome is WriteOutcome.WON
        written = result.checkpoint
        if state is None:
            before = history[-1]
            expected_state = (
                (before.state, before.state_sequence_number) if before else (None, None)
            )
        else:
            expected_state = (state, number) if state else (None, None)
        assert (written.state, written.state_sequence_number) == expected_state
        assert (written.completed, written.isolation) == (completed, isolation)
        assert (written.sequence_number, written.writer) == (number, f"w{process}")
        history.append(written)

    @invariant()
    def both_processes_read_the_last_write(self):
        """Both processes list and read exactly the last entries of the histories."""
        for group in GROUPS:
            owners = {
                key[1]: history[-1]
                for key, history in self.owners.items()
                if key[0] == group and history[-1]
            }
            checkpoints = {
                key[1]: history[-1]
                for key, history in self.checkpoints.items()
                if key[0] == group and history[-1]
            }
            for store in self.stores:
                snapshot = self.run_(store.list_ownership(group))
                assert {r.partition_id: r for r in snapshot.ownerships} == owners
                listed = self.run_(store.list_checkpoints(group))
                assert {c.partition_id: c.etag for c in listed} == {
                    key: checkpoint.etag for key, checkpoint in checkpoints.items()
                }
                for partition_id in ("0", "1"):
                    read = self.run_(store.read_checkpoint(group, partition_id))
                    assert read == checkpoints.get(partition_id)


class MemoryMachine(StoreMachine):
    """The memory store, which is the reference implementation."""

    def make_stores(self):
        """Return two stores over one account."""
        first = MemoryCheckpointStore()
        return [first, MemoryCheckpointStore(first.account)]


class SqliteMachine(StoreMachine):
    """The SQLite store."""

    def make_stores(self):
        """Return two stores over one file."""
        self.directory = tempfile.TemporaryDirectory()
        path = Path(self.directory.name) / "store.db"
        return [SqliteCheckpointStore(path), SqliteCheckpointStore(path)]

    def teardown(self):
        """Close the stores and remove the file."""
        super().teardown()
        self.directory.cleanup()


class PostgresMachine(StoreMachine):
    """The PostgreSQL store."""

    def __init__(self, dsn):
        self.dsn = dsn
        super().__init__()

    def make_stores(self):
        """Return two stores over one schema."""
        schema = f"s{uuid.uuid4().hex}"
        return [
            PostgresCheckpointStore(self.dsn, schema=schema, create_schema=True) for _ in range(2)
        ]


@pytest.mark.long
def test_postgres_has_the_results_of_the_model(postgres):
    """The PostgreSQL store, on a real server."""
    run_state_machine_as_test(
        lambda: PostgresMachine(postgres.dsn),  # type: ignore[arg-type]
        settings=settings(max_examples=15, stateful_step_count=20, deadline=None),
    )


class TableMachine(StoreMachine):
    """The model against the table store; each history has a table of its own."""

    def __init__(self, conn_str):
        self.conn_str = conn_str
        super().__init__()

    def make_stores(self):
        """Return two stores over one table."""
        name = f"t{uuid.uuid4().hex}"
        return [
            TableCheckpointStore.from_connection_string(self.conn_str, name, create_table=True)
            for _ in range(2)
        ]


@pytest.mark.long
def test_tables_have_the_results_of_the_model(tables):
    """The table store, on a real service."""
    run_state_machine_as_test(
        lambda: TableMachine(tables.connection_string),  # type: ignore[arg-type]
        settings=settings(max_examples=15, stateful_step_count=20, deadline=None),
    )


TestMemory = MemoryMachine.TestCase
TestMemory.settings = settings(max_examples=30, deadline=None)
TestSqlite = SqliteMachine.TestCase
TestSqlite.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
