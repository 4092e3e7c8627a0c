"""Guards of the stores: the condition of each write, and recognising an own earlier write."""

from tests.mutation.guard import Guard, guards_in

CONTRACT = "tests/contract/test_store_contract.py"
LOST_UPDATE = "two processors that read the same record both win"

MEMORY = guards_in(
    "checkpointstores/memory.py",
    [CONTRACT, "tests/unit/checkpointstores/test_memory.py"],
    Guard(
        name="memory: an ownership write requires the expected ETag (claim, renew, hand over, "
        "release) ||",
        without_it=LOST_UPDATE,
        words="        if claim.expected_etag != (current.etag if current else None):",
        mutated="        if False:",
    ),
    Guard(
        name="memory: a member record is replaced only with its ETag",
        without_it="a second process with the same owner id is not noticed",
        words="        if member.etag != (current.etag if current else None):",
        mutated="        if False:",
    ),
    Guard(
        name="memory: a member record is deleted only with its ETag",
        without_it="a late stop deletes the member record of the process that succeeded it",
        words="        if current is not None and current.etag != member.etag:",
        mutated="        if False:",
    ),
    Guard(
        name="memory: a checkpoint is replaced only with its ETag",
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
        name="SQLite: an ownership write requires the expected ETag ||",
        without_it=LOST_UPDATE,
        words="    if claim.expected_etag != (current.etag if current else None):",
        mutated="    if False:",
        is_simulated=False,
    ),
    Guard(
        name="SQLite: a member record is replaced only with its ETag",
        without_it="a second process with the same owner id is not noticed",
        words="    if member.etag != _member_etag(db, group, member.owner_id):",
        mutated="    if False:",
        is_simulated=False,
    ),
    Guard(
        name="SQLite: a member record is deleted only with its ETag",
        without_it="a late stop deletes the member record of the process that succeeded it",
        words="    if _member_etag(db, group, member.owner_id) not in {None, member.etag}:",
        mutated="    if False:",
        is_simulated=False,
    ),
    Guard(
        name="SQLite: a checkpoint is replaced only with its ETag",
        without_it="a former owner writes over its successor's position",
        words="(row[0] if row else None) != (update.replaces.etag if update.replaces else None)",
        mutated="False",
        is_simulated=False,
    ),
)

BLOB = guards_in(
    "checkpointstores/blob/azure_container.py",
    [CONTRACT, "tests/contract/test_blob_opening.py", "tests/contract/test_blob_formats.py"],
    Guard(
        name="blob: a first write fails if the blob exists ||",
        without_it=LOST_UPDATE,
        words='{"overwrite": False} if etag is None',
        mutated='{"overwrite": True} if etag is None',
        is_simulated=False,
    ),
    Guard(
        name="blob: a blob with a body is replaced only with its ETag",
        without_it="a former owner writes over its successor's position and state",
        words='{"overwrite": True} | _if_is(etag)',
        mutated='{"overwrite": True}',
        is_simulated=False,
    ),
    Guard(
        name="blob: metadata are replaced only with the ETag of the blob ||",
        without_it=LOST_UPDATE,
        words="set_blob_metadata(dict(metadata), **_if_is(etag))",
        mutated="set_blob_metadata(dict(metadata))",
        is_simulated=False,
    ),
    Guard(
        name="blob: a blob is deleted only with its ETag",
        without_it="a late stop deletes the member record of the process that succeeded it",
        words="delete_blob(**_if_is(etag))",
        mutated="delete_blob()",
        is_simulated=False,
    ),
    Guard(
        name="blob: the state is read from the same version of a blob as its position",
        without_it="a reader gets an old position with a new state",
        words="offset=0, length=length, **_if_is(etag)",
        mutated="offset=0, length=length",
        is_simulated=False,
    ),
    Guard(
        name="blob: repeats of a request by the HTTP client are noticed",
        without_it="the processor's own write, which the HTTP client repeated, is taken for a "
        "lost race",
        words="                was_repeated=len(sends) > 1,\n",
        mutated="",
        is_simulated=False,
    ),
)

BLOB_CLIENT = guards_in(
    "checkpointstores/blob/store.py",
    # Not the contract: with the Azure client's retries each lost answer takes half a minute.
    ["tests/contract/test_blob_opening.py::test_a_service_that_does_not_answer_is_unavailable"],
    Guard(
        name="blob: the retries of the Azure client are off",
        without_it="a lost answer is hidden, and the processor's own write is taken for a lost "
        "race",
        words="self._new_client(transport=transport, retry_total=0)",
        mutated="self._new_client(transport=transport)",
        is_simulated=False,
    ),
)

AZURE_ANSWERS = guards_in(
    "checkpointstores/transport.py",
    ["tests/contract/test_foreign_answers.py"],
    Guard(
        name="Azure Storage: only the service's own answers count",
        without_it="a gateway's 404 or 412 is taken for a lost race and costs partitions",
        words="    trace.on_request_end.append(_check_answer)\n",
        mutated="",
        is_simulated=False,
    ),
)


BLOB_LISTING = guards_in(
    "checkpointstores/blob/azure_container.py",
    [
        "tests/unit/checkpointstores/blob/test_azure_container.py",
        "tests/contract/test_foreign_answers.py",
    ],
    Guard(
        name="blob: a blob written between the two requests of a read is read anew",
        without_it="it counts as missing, so its partition begins anew",
        words="continue  # written between the two requests: read the newer version",
        mutated="return None",
        is_simulated=False,
    ),
    Guard(
        name="blob: a listing of several pages is as old as its first page",
        without_it="an owner on the first page that renewed meanwhile is judged expired",
        words="as_of = as_of or self._time_of(page)",
        mutated="as_of = self._time_of(page)",
        is_simulated=False,
    ),
)

BLOB_RECORDS = guards_in(
    "checkpointstores/blob/round_trips.py",
    [CONTRACT, "tests/contract/test_blob_opening.py", "tests/contract/test_blob_formats.py"],
    Guard(
        name="blob: the processor's own write is recognised after a lost answer",
        without_it="a lost answer costs a partition",
        words="        if found is not None and is_mine(found):\n",
        mutated="        if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="blob: a record of another writer does not count as the processor's own",
        without_it="a write that was lost after a lost answer is taken for won",
        words="        if found is not None and is_mine(found):\n",
        mutated="        if found is not None:\n",
        is_simulated=False,
    ),
    Guard(
        name="blob: a failed condition without a lost answer is a lost race",
        without_it="a former owner with the same owner id takes a write of another process for "
        "its own",
        words="            if not is_unanswered and not error.was_repeated:\n",
        mutated="            if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="blob: a write without an answer is unknown, not lost",
        without_it="a processor gives up a lease that it still holds",
        words="""        except StoreError as error:
            return WriteAnswer(WriteOutcome.UNKNOWN, error=error)
        else:
""",
        mutated="""        except StoreError:
            return WriteAnswer(WriteOutcome.LOST)
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

BLOB_ERRORS = guards_in(
    "checkpointstores/blob/container.py",
    ["tests/unit/checkpointstores", "tests/contract/test_blob_opening.py"],
    Guard(
        name="blob: only a blob that changed is a lost race",
        without_it="an Azure lease on a blob, or the deletion of the container, costs partitions",
        words="if status in _RACE_STATUSES and code in _RACE_CODES and right in _OF_ONE_BLOB:",
        mutated="if status in _RACE_STATUSES and right in _OF_ONE_BLOB:",
        is_simulated=False,
    ),
)
