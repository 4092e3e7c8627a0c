"""Guards of handlers' transactions, and of the PostgreSQL store."""

from tests.mutation.guard import Guard, guards_in

SCENES = "tests/integration/transactions/test_exactly_once.py"
TWICE = "an event's rows are there twice"

COMMITS = guards_in(
    "eventproc/partition/transactions/commits.py",
    [SCENES],
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
