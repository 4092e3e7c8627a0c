"""Guards of the stores: every condition, and the recognition of one's own write."""

from tests.mutation.guard import Guard, guards_in

CONTRACT = "tests/contract/test_store_contract.py"
LOST_UPDATE = "two that read the same record both win"

MEMORY = guards_in(
    "checkpointstores/memory.py",
    [CONTRACT, "tests/unit/checkpointstores/test_memory.py"],
    Guard(
        name="memory: the etag of an ownership claim (claim, renew, hand over, release)",
        without_it=LOST_UPDATE,
        words="        if claim.expected_etag != (current.etag if current else None):",
        mutated="        if False:",
    ),
    Guard(
        name="memory: the etag of a presence record",
        without_it="a second process under one name is not noticed",
        words="        if member.etag != (current.etag if current else None):",
        mutated="        if False:",
    ),
    Guard(
        name="memory: the etag at the withdrawal of presence",
        without_it="a late stop takes the presence of its own successor away",
        words="        if current is not None and current.etag != member.etag:",
        mutated="        if False:",
    ),
    Guard(
        name="memory: the etag of a checkpoint",
        without_it="a former owner writes over its successor's position",
        words="        if expected_etag != (current.etag if current else None):",
        mutated="        if False:",
    ),
    suites=("edges", "safety"),
)

SQLITE = guards_in(
    "checkpointstores/sqlite/records.py",
    [CONTRACT],
    Guard(
        name="SQLite: the etag of an ownership claim",
        without_it=LOST_UPDATE,
        words="    if claim.expected_etag != (current.etag if current else None):",
        mutated="    if False:",
        is_simulated=False,
    ),
    Guard(
        name="SQLite: the etag of a presence record",
        without_it="a second process under one name is not noticed",
        words="    if member.etag != _member_etag(db, group, member.owner_id):",
        mutated="    if False:",
        is_simulated=False,
    ),
    Guard(
        name="SQLite: the etag at the withdrawal of presence",
        without_it="a late stop takes the presence of its own successor away",
        words="    if _member_etag(db, group, member.owner_id) not in {None, member.etag}:",
        mutated="    if False:",
        is_simulated=False,
    ),
    Guard(
        name="SQLite: the etag of a checkpoint",
        without_it="a former owner writes over its successor's position",
        words="(row[0] if row else None) != (update.replaces.etag if update.replaces else None)",
        mutated="False",
        is_simulated=False,
    ),
)

BLOB = guards_in(
    "checkpointstores/blob/store.py",
    [CONTRACT, "tests/contract/test_blob_opening.py", "tests/contract/test_blob_formats.py"],
    Guard(
        name="blob: a first write only if there is no such blob",
        without_it=LOST_UPDATE,
        words="blob.upload_blob(body, overwrite=False, metadata=dict(metadata))",
        mutated="blob.upload_blob(body, overwrite=True, metadata=dict(metadata))",
        is_simulated=False,
    ),
    Guard(
        name="blob: the etag of a write with a body",
        without_it="a former owner writes over its successor's position and state",
        words="""                    etag=etag,
                    match_condition=MatchConditions.IfNotModified,
""",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="blob: the etag of a write of metadata",
        without_it=LOST_UPDATE,
        words="dict(metadata), etag=etag, match_condition=MatchConditions.IfNotModified",
        mutated="dict(metadata)",
        is_simulated=False,
    ),
    Guard(
        name="blob: the etag of a deletion",
        without_it="a late stop takes the presence of its own successor away",
        words="""                etag=etag, match_condition=MatchConditions.IfNotModified
            ),
        )

    def""",
        mutated="""            ),
        )

    def""",
        is_simulated=False,
    ),
    Guard(
        name="blob: a position and the state beside it are of one version",
        without_it="a reader pairs an old position with a new state",
        words="offset=0, length=length, etag=etag, match_condition=MatchConditions.IfNotModified",
        mutated="offset=0, length=length",
        is_simulated=False,
    ),
    Guard(
        name="blob: requests that the HTTP client repeats by itself are counted",
        without_it="one's own write, repeated under the hood, is taken for a lost race",
        words="                was_repeated=len(sends) > 1,\n",
        mutated="",
        is_simulated=False,
    ),
)

BLOB_CLIENT = guards_in(
    "checkpointstores/blob/store.py",
    # Not the contract: with the vendor's patience each lost answer takes it half a minute.
    ["tests/contract/test_blob_opening.py::test_a_service_that_does_not_answer_is_unavailable"],
    Guard(
        name="blob: one policy repeats requests, ours",
        without_it="a lost answer is hidden, and one's own write is taken for a lost race",
        words="self._new_client(transport=transport, retry_total=0)",
        mutated="self._new_client(transport=transport)",
        is_simulated=False,
    ),
)

BLOB_RECORDS = guards_in(
    "checkpointstores/blob/records.py",
    [CONTRACT, "tests/contract/test_blob_opening.py", "tests/contract/test_blob_formats.py"],
    Guard(
        name="blob: one's own write is recognised after a lost answer",
        without_it="a lost answer costs a partition",
        words="        if found is not None and is_mine(found):\n",
        mutated="        if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="blob: a record of somebody else is not taken for one's own",
        without_it="a lost race after a lost answer is taken for won",
        words="        if found is not None and is_mine(found):\n",
        mutated="        if found is not None:\n",
        is_simulated=False,
    ),
    Guard(
        name="blob: without a lost answer a failed condition is a lost race",
        without_it="a former owner of the same name recognises a write that is not its own",
        words="            if not is_unanswered and not error.was_repeated:\n",
        mutated="            if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="blob: no answer is unknown, not lost",
        without_it="a lease is given up that stands",
        words="""        except StoreError as error:
            return _Answer(WriteOutcome.UNKNOWN, error=error)
        else:
""",
        mutated="""        except StoreError:
            return _Answer(WriteOutcome.LOST)
        else:
""",
        is_simulated=False,
    ),
)

BLOB_CHECKPOINT = guards_in(
    "checkpointstores/blob/checkpoint.py",
    [CONTRACT, "tests/contract/test_blob_formats.py", "tests/contract/test_blob_opening.py"],
    Guard(
        name="blob: a checkpoint is recognised by its writer, not by its content",
        without_it="a former owner takes its successor's adoption for its own write",
        words="""        position.writer == update.writer
        and """,
        mutated="        ",
        is_simulated=False,
    ),
)

BLOB_MEANING = guards_in(
    "checkpointstores/blob/container.py",
    ["tests/unit/checkpointstores", "tests/contract/test_blob_opening.py"],
    Guard(
        name="blob: only a blob that changed is a lost race",
        without_it="a lease on a blob, or a container that goes, costs partitions",
        words="if status in _RACE_STATUSES and code in _RACE_CODES:",
        mutated="if status in _RACE_STATUSES:",
        is_simulated=False,
    ),
)
