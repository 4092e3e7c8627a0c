"""The records of the blob store, over a container in memory and on virtual time."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from checkpointstores.blob.azure_layout import RecordKind, folder
from eventproc.errors import StoreError, StoreRejectedError
from eventproc.models import (
    Checkpoint,
    CheckpointUpdate,
    ConsumerGroup,
    Member,
    OwnershipClaim,
    WriteOutcome,
)
from eventproc.testing import check_checkpoint_store, clause_names
from eventproc.testing.virtual_time import run_virtual
from tests.unit.checkpointstores.blob.container_bench import (
    NO_ANSWER,
    MemoryBlobStore,
    MemoryContainer,
)

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
CLAIM = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
MEMBER = Member(owner_id="a", incarnation="1")
REFUSED = StoreRejectedError("no right")
CHECKPOINT_BLOB = folder(GROUP, RecordKind.CHECKPOINT) + "0"

Story = Callable[[MemoryContainer, MemoryBlobStore], Coroutine[object, object, Any]]


@pytest.mark.parametrize("clause", clause_names())
def test_blob_records_meet_each_clause_of_the_contract(clause):
    """Over any container: the service's answers, lost ones included, are all that they need."""
    container = MemoryContainer()
    [report] = run_virtual(
        check_checkpoint_store(
            lambda: MemoryBlobStore(container),
            lose_answers=container.lose_answers,
            records=101,
            only=clause,
        )
    )

    assert report.took is not None


def played(story: Story) -> Any:
    """Play a story on an open store over a new container, on virtual time."""

    async def play() -> Any:
        container = MemoryContainer()
        async with MemoryBlobStore(container) as store:
            return await story(container, store)

    return run_virtual(play())


def update_of(number: int, replaces: Checkpoint | None = None, **changes: Any) -> CheckpointUpdate:
    """Return an update of partition 0."""
    values = {
        "partition_id": "0",
        "offset": str(number),
        "sequence_number": number,
        "replaces": replaces,
        "writer": "pump-a",
    }
    return CheckpointUpdate(**(values | changes))


async def stored(store: MemoryBlobStore, update: CheckpointUpdate) -> Checkpoint:
    """Write a checkpoint and return it."""
    result = await store.update_checkpoint(GROUP, update)
    assert result.checkpoint is not None
    return result.checkpoint


async def writes(
    store: MemoryBlobStore,
) -> Sequence[Callable[[], Awaitable[tuple[WriteOutcome, StoreError | None]]]]:
    """Store one record of each kind; return a write of each kind that replaces it."""
    [claimed] = await store.claim_ownership(GROUP, [CLAIM])
    assert claimed.ownership is not None
    claim = replace(CLAIM, expected_etag=claimed.ownership.etag)
    member = (await store.announce_member(GROUP, MEMBER)).member
    assert member is not None
    whole = await stored(store, update_of(7))

    async def claim_again() -> tuple[WriteOutcome, StoreError | None]:
        [result] = await store.claim_ownership(GROUP, [claim])
        return result.outcome, result.error

    async def announce_again() -> tuple[WriteOutcome, StoreError | None]:
        result = await store.announce_member(GROUP, member)
        return result.outcome, result.error

    async def update(replaces: Checkpoint) -> tuple[WriteOutcome, StoreError | None]:
        result = await store.update_checkpoint(GROUP, update_of(8, replaces))
        return result.outcome, result.error

    return (
        claim_again,
        announce_again,
        partial(update, whole),
        partial(update, replace(whole, is_partial=True)),
    )


@pytest.mark.parametrize("failure", [REFUSED, NO_ANSWER])
@pytest.mark.parametrize("kind", range(4))
def test_the_outcome_of_a_write_that_fails_is_unknown_with_the_reason(kind, failure):
    """Claims, member records and checkpoints, also those that replace a listed checkpoint."""

    async def story(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        write = (await writes(store))[kind]
        with container.failing([failure] * 9, is_carried_out=False):
            return await write()

    assert played(story) == (WriteOutcome.UNKNOWN, failure)


@pytest.mark.parametrize("kind", range(3))
def test_a_write_whose_answer_is_lost_and_that_cannot_be_read_is_unknown(kind):
    """The first request was carried out, and no later one tells so."""

    async def story(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        write = (await writes(store))[kind]
        with container.failing([NO_ANSWER, None, REFUSED]):
            return await write()

    assert played(story) == (WriteOutcome.UNKNOWN, REFUSED)


def test_a_write_whose_record_is_deleted_before_it_is_read_is_lost():
    """Its answer was lost, and then nothing shows whose write it was."""

    async def story(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        member = (await store.announce_member(GROUP, MEMBER)).member
        assert member is not None

        def failures() -> Any:
            yield NO_ANSWER
            container.blobs.clear()

        with container.failing(failures()):
            return (await store.announce_member(GROUP, member)).outcome

    assert played(story) is WriteOutcome.LOST


@pytest.mark.parametrize("failures", [[REFUSED], [None, REFUSED]])
def test_the_outcome_of_a_withdrawal_that_fails_is_unknown(failures):
    """The deletion is refused, or the reading that would show what a lost deletion met."""

    async def story(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        member = (await store.announce_member(GROUP, MEMBER)).member
        assert member is not None
        etag = "0xOLD" if len(failures) > 1 else member.etag
        with container.failing(failures, is_carried_out=False):
            outcome = await store.withdraw_member(GROUP, replace(member, etag=etag))
        return outcome, len(container.blobs)

    assert played(story) == (WriteOutcome.UNKNOWN, 1)


def test_a_withdrawal_is_won_although_the_owner_id_is_announced_again_at_once():
    """Another process with that owner id may do so; the deletion has been answered."""

    async def story(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        member = (await store.announce_member(GROUP, MEMBER)).member
        assert member is not None
        (name, blob), *_ = container.blobs.items()

        def failures() -> Any:
            container.write(name, blob.metadata)
            yield None

        with container.failing(failures()):
            return await store.withdraw_member(GROUP, member)

    assert played(story) is WriteOutcome.WON


@pytest.mark.parametrize("is_listed", [False, True])
def test_a_checkpoint_that_was_deleted_is_not_created_again(is_listed):
    """The writer knows an ETag, so its record was deleted: an operator has reset the partition."""

    async def story(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        await stored(store, update_of(7))
        [listed] = await store.list_checkpoints(GROUP)
        container.blobs.clear()
        result = await store.update_checkpoint(
            GROUP, update_of(8, replace(listed, is_partial=is_listed))
        )
        return result.outcome, container.blobs

    assert played(story) == (WriteOutcome.LOST, {})


def test_a_position_is_stored_in_one_request_without_the_state():
    """A large state is sent only when it changes, and read only when a partition starts."""

    async def story(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        checkpoint = await stored(store, update_of(7, state=b"seven"))
        checkpoint = await stored(store, update_of(8, checkpoint))
        await stored(store, update_of(9, replace(checkpoint, is_partial=True), state=b"nine"))
        return container.requests

    assert played(story) == ["put", "set_metadata", "put"]


def test_times_are_whole_seconds():
    """They travel as HTTP dates. A record may be almost a second older than it seems."""

    async def story(_container: MemoryContainer, store: MemoryBlobStore) -> Any:
        listings = [await store.list_ownership(GROUP), await store.list_members(GROUP)]
        return [listing.resolution for listing in listings]

    assert played(story) == [timedelta(seconds=1)] * 2


async def test_a_closed_store_raises():
    """It has no connection any more."""
    store = MemoryBlobStore(MemoryContainer())
    await store.open()
    await store.close()
    with pytest.raises(RuntimeError, match="not open"):
        await store.list_ownership(GROUP)


def test_a_damaged_member_record_is_left_out_and_logged_once(caplog):
    """A folder, which accounts with a hierarchical namespace have, is left out in silence."""
    below = folder(GROUP, RecordKind.MEMBER)

    async def story(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        await store.announce_member(GROUP, MEMBER)
        container.write(f"{below}damaged", {"ownerid": "b"})
        stub = container.write(f"{below}stub", {"hdi_isfolder": "true"})
        container.blobs[stub.name] = replace(stub, is_folder=True)
        for _ in range(2):
            listing = await store.list_members(GROUP)
        return [member.owner_id for member in listing.members]

    assert played(story) == ["a"]
    [line] = [vars(record) for record in caplog.records]
    assert (line["event"], line["blob"]) == ("store_record_malformed", f"{below}damaged")


def test_an_ownership_record_without_an_owner_is_logged(caplog):
    """It counts as released; one with an empty owner id is what a release looks like."""
    below = folder(GROUP, RecordKind.OWNERSHIP)

    async def story(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        container.write(f"{below}0", {"OwnerId": ""})
        container.write(f"{below}1", {})
        listing = await store.list_ownership(GROUP)
        return [record.owner_id for record in listing.ownerships]

    assert played(story) == [None, None]
    [line] = [vars(record) for record in caplog.records]
    assert (line["event"], line["blob"]) == ("store_record_malformed", f"{below}1")


def test_checkpoints_without_a_usable_position_or_body_are_logged(caplog):
    """A body that another program wrote is ignored, and a body of this format is not logged."""
    at = {"offset": "1", "sequencenumber": "1"}

    async def story(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        await stored(store, update_of(7, state=b"seven"))
        seen = [await store.read_checkpoint(GROUP, "0")]
        for metadata, body in (({"offset": ""}, b""), (at, b"{}"), (at, b"")):
            container.write(CHECKPOINT_BLOB, metadata, body)
            seen.append(await store.read_checkpoint(GROUP, "0"))
        return [found and (found.sequence_number, found.state) for found in seen]

    assert played(story) == [(7, b"seven"), (None, None), (1, None), (1, None)]
    lines = [vars(record) for record in caplog.records]
    assert [line["event"] for line in lines] == ["store_record_malformed"] * 2
    assert [line["reason"] for line in lines] == [
        "it names no position",
        "its body is not in eventproc's format, and is ignored",
    ]
