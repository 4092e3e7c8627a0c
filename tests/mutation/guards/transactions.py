"""Guards of handlers' transactions, and of the PostgreSQL store."""

from tests.mutation.guard import Guard, guards_in

SCENES = "tests/integration/transactions/test_exactly_once.py"
TWICE = "an event's rows are there twice"

COMMITS = guards_in(
    "eventproc/partition/transactions/commits.py",
    ["tests/unit/eventproc/partition/transactions/test_commits.py", SCENES],
    Guard(
        name="transaction: a commit never moves the stored position back",
        without_it=TWICE,
        words="if is_behind(snapshot.sequence_number, checkpointer.stored):",
        mutated="if False:",
        is_simulated=False,
    ),
    Guard(
        name="transaction: progress of other keys during a commit is stored later",
        without_it="it is stored only with the next event, or never",
        words="revision = checkpointer.progress.revision if is_newest else snapshot.revision",
        mutated="revision = checkpointer.progress.revision",
        is_simulated=False,
    ),
    Guard(
        name="transaction: a handler is told that the outcome of its commit is not known",
        without_it="it takes rows that are committed for rolled back",
        words="            return CommitUnknownError(self._partition_id)\n",
        mutated="            pass\n",
        is_simulated=False,
    ),
    Guard(
        name="transaction: the stored progress contains the events of the call",
        without_it=TWICE,
        words="checkpointer.progress.after(events)",
        mutated="checkpointer.progress.snapshot()",
        is_simulated=False,
    ),
    Guard(
        name="transaction: events are done when they are committed",
        without_it="committed events are delivered again",
        words="done_count = checkpointer.progress.done_in_call(events)",
        mutated="done_count = 0",
        is_simulated=False,
    ),
    Guard(
        name="transaction: a refused commit ends the pump",
        without_it="a former owner goes on",
        words="""            self._checkpointer.lose()
            raise""",
        mutated="            raise",
        is_simulated=False,
    ),
)

CONTEXT = guards_in(
    "eventproc/partition/context.py",
    [SCENES],
    Guard(
        name="transaction: a thread whose call was cancelled commits nothing",
        without_it="a state that was undone, and events that are delivered again, are stored",
        words="                    _raise_if(is_cancelled)\n",
        mutated="",
        killers=("tests/integration/transactions/test_cancelled_blocks.py",),
        is_simulated=False,
    ),
    Guard(
        name="transaction: an error undoes what the block did to the state",
        without_it="a state that belongs to no rows is stored",
        words="                self._progress.state = state\n            raise",
        mutated="                pass\n            raise",
        is_simulated=False,
    ),
    Guard(
        name="transaction: done is refused in the block",
        without_it="a position is stored without its rows",
        words='        self._refuse_in_transaction("done")\n',
        mutated="",
        is_simulated=False,
    ),
)

POSTGRES = guards_in(
    "checkpointstores/postgres/schema.py",
    [SCENES, "tests/contract/test_postgres_transactions.py"],
    Guard(
        name="PostgreSQL: a checkpoint is written only over the one that was read",
        without_it="a former owner moves the position back, or commits rows",
        words="            AND c.etag = expected\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="PostgreSQL: a transaction fails unless it wrote the checkpoint",
        without_it="a former owner commits rows",
        words="IF fails AND written_at IS NULL THEN",
        mutated="IF false THEN",
        is_simulated=False,
    ),
)

POSTGRES_CHANGES = guards_in(
    "checkpointstores/postgres/changes.py",
    ["tests/contract/test_postgres_changes.py"],
    Guard(
        name="PostgreSQL: what was missed without a connection is read when there is one",
        without_it="a change during a fail-over is noticed only at the next poll",
        words="                    self._notify_all()\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="PostgreSQL: a processor is not told of its own writes",
        without_it="each cycle that writes causes another one",
        words="if not self._is_own(notice.pid):",
        mutated="if True:",
        is_simulated=False,
    ),
)

SQLITE = guards_in(
    "checkpointstores/sqlite/transactions.py",
    [SCENES],
    Guard(
        name="SQLite: a handler cannot end its transaction",
        without_it="rows are stored without their position",
        words="file.connection.set_authorizer(_authorize)",
        mutated="pass",
        is_simulated=False,
    ),
)

EXACT = guards_in(
    "eventproc/runtime/partitions.py",
    [f"{SCENES}::test_an_owner_that_finds_another_writers_checkpoint_begins_again_there"],
    Guard(
        name="with transactions, another writer's checkpoint ends the pump",
        without_it="events of another writer's transaction are handled again",
        words="            checkpointer.is_exact = True\n",
        mutated="",
        is_simulated=False,
    ),
)
