"""The records of the blob store, over a container in memory and on virtual time."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from checkpointstores.blob._layout import RecordKind, folder, home, record_blob
from eventproc._base.azure_storage.answers import ConditionFailedError
from eventproc.errors import StoreCorruptError, StoreError, StoreRejectedError
from eventproc.models import Checkpoint, WriteOutcome
from eventproc.testing import check_checkpoint_store, clause_names
from eventproc.testing._virtual_time import run_virtual
from tests.unit.checkpointstores.blob.container_bench import (
    CLAIM,
    GROUP,
    MEMBER,
    NO_ANSWER,
    MemoryBlobStore,
    MemoryContainer,
    result_of,
    stored,
)
from tests.unit.checkpointstores.updates import update_of

REFUSED = StoreRejectedError("no right")
OTHERS = {"ownerid": "b", "incarnation": "2", "offset": "9", "sequencenumber": "9"}


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

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        write = (await writes(store))[kind]
        with container.failing([failure] * 9, is_carried_out=False):
            return await write()

    assert result_of(scenario) == (WriteOutcome.UNKNOWN, failure)


@pytest.mark.parametrize("is_first_carried_out", [True, False])
@pytest.mark.parametrize("kind", range(3))
def test_a_write_that_the_http_client_repeated_is_won_if_the_first_was(kind, is_first_carried_out):
    """The second one fails its condition: because of the first, or of another writer."""

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        write = (await writes(store))[kind]

        def failures() -> Any:
            if not is_first_carried_out:
                for name in list(container.blobs):
                    container.write(name, OTHERS)
            yield ConditionFailedError(was_repeated=True)

        with container.failing(failures(), is_carried_out=is_first_carried_out):
            outcome, _ = await write()
        return outcome

    assert result_of(scenario) is (WriteOutcome.WON if is_first_carried_out else WriteOutcome.LOST)


@pytest.mark.parametrize("kind", range(3))
def test_a_write_whose_answer_is_lost_and_that_cannot_be_read_is_unknown(kind):
    """The first request was carried out, and no later one tells so."""

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        write = (await writes(store))[kind]
        with container.failing([NO_ANSWER, None, REFUSED]):
            return await write()

    assert result_of(scenario) == (WriteOutcome.UNKNOWN, REFUSED)


def test_a_write_whose_record_is_deleted_before_it_is_read_is_lost():
    """Its answer was lost, and then nothing shows whose write it was."""

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        member = (await store.announce_member(GROUP, MEMBER)).member
        assert member is not None

        def failures() -> Any:
            yield NO_ANSWER
            container.blobs.clear()

        with container.failing(failures()):
            return (await store.announce_member(GROUP, member)).outcome

    assert result_of(scenario) is WriteOutcome.LOST


def test_an_update_that_removes_the_state_is_not_won_if_there_still_is_one():
    """The same pump wrote a state at the same position, and the answer of the update was lost."""

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        first = await stored(store, update_of(7, state=b"seven"))
        (name, blob), *_ = container.blobs.items()

        def failures() -> Any:
            container.write(name, blob.metadata, blob.body)  # it arrives for a second time
            yield NO_ANSWER

        with container.failing(failures(), is_carried_out=False):
            result = await store.update_checkpoint(GROUP, update_of(7, first, state=b""))
        return result.outcome

    assert result_of(scenario) is WriteOutcome.LOST


@pytest.mark.parametrize("failures", [[REFUSED], [None, REFUSED]])
def test_the_outcome_of_a_withdrawal_that_fails_is_unknown(failures):
    """The deletion is refused, or the reading that would show what a lost deletion met."""

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        member = (await store.announce_member(GROUP, MEMBER)).member
        assert member is not None
        etag = "0xOLD" if len(failures) > 1 else member.etag
        with container.failing(failures, is_carried_out=False):
            outcome = await store.withdraw_member(GROUP, replace(member, etag=etag))
        return outcome, len(container.blobs)

    assert result_of(scenario) == (WriteOutcome.UNKNOWN, 1)


def test_a_withdrawal_is_won_although_the_owner_id_is_announced_again_at_once():
    """Another process with that owner id may do so; the deletion has been answered."""

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        member = (await store.announce_member(GROUP, MEMBER)).member
        assert member is not None
        (name, blob), *_ = container.blobs.items()

        def failures() -> Any:
            container.write(name, blob.metadata)
            yield None

        with container.failing(failures()):
            return await store.withdraw_member(GROUP, member)

    assert result_of(scenario) is WriteOutcome.WON


@pytest.mark.parametrize("is_listed", [False, True])
def test_a_checkpoint_that_was_deleted_is_not_created_again(is_listed):
    """The writer knows an ETag, so its record was deleted: an operator has reset the partition."""

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        await stored(store, update_of(7))
        [listed] = await store.list_checkpoints(GROUP)
        container.blobs.clear()
        result = await store.update_checkpoint(
            GROUP, update_of(8, replace(listed, is_partial=is_listed))
        )
        return result.outcome, container.blobs

    assert result_of(scenario) == (WriteOutcome.LOST, {})


def test_a_position_is_stored_in_one_request_without_the_state():
    """A large state is sent only when it changes, and read only when a partition starts."""

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        checkpoint = await stored(store, update_of(7, state=b"seven"))
        checkpoint = await stored(store, update_of(8, checkpoint))
        await stored(store, update_of(9, replace(checkpoint, is_partial=True), state=b"nine"))
        return container.requests

    assert result_of(scenario) == ["put", "set_metadata", "put"]


def test_times_are_whole_seconds():
    """They travel as HTTP dates. A record may be almost a second older than it seems."""

    async def scenario(_container: MemoryContainer, store: MemoryBlobStore) -> Any:
        owned, present = await store.list_ownership(GROUP), await store.list_members(GROUP)
        return owned.resolution, present.resolution

    assert result_of(scenario) == (timedelta(seconds=1),) * 2


def test_a_damaged_member_record_is_left_out_and_logged_once(caplog):
    """A folder, which accounts with a hierarchical namespace have, is left out in silence."""
    below = folder(home(GROUP), RecordKind.MEMBER)

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        await store.announce_member(GROUP, MEMBER)
        container.write(f"{below}damaged", {"ownerid": "b"})
        stub = container.write(f"{below}stub", {"hdi_isfolder": "true"})
        container.blobs[stub.name] = replace(stub, is_folder=True)
        listings = [await store.list_members(GROUP) for _ in range(2)]
        return [[member.owner_id for member in each.members] for each in listings]

    assert result_of(scenario) == [["a"], ["a"]]
    [line] = [vars(record) for record in caplog.records]
    assert (line["event"], line["blob"]) == ("store_record_malformed", f"{below}damaged")


def test_an_ownership_record_without_an_owner_is_logged(caplog):
    """It counts as released; one with an empty owner id is what a release looks like."""
    below = folder(home(GROUP), RecordKind.OWNERSHIP)

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        container.write(f"{below}0", {"OwnerId": ""})
        container.write(f"{below}1", {})
        listing = await store.list_ownership(GROUP)
        return [record.owner_id for record in listing.ownerships]

    assert result_of(scenario) == [None, None]
    [line] = [vars(record) for record in caplog.records]
    assert (line["event"], line["blob"]) == ("store_record_malformed", f"{below}1")


def test_records_without_a_partition_in_their_names_are_no_records():
    """Folders, on accounts with a hierarchical namespace, and blobs in deeper folders."""
    metadata = {"ownerid": "a", "offset": "1", "sequencenumber": "1"}

    async def scenario(container: MemoryContainer, store: MemoryBlobStore) -> Any:
        for kind in (RecordKind.OWNERSHIP, RecordKind.CHECKPOINT):
            below = folder(home(GROUP), kind)
            container.write(f"{below}0", metadata)
            container.write(f"{below}1/deeper", metadata)
            stub = container.write(f"{below}2", metadata)
            container.blobs[stub.name] = replace(stub, is_folder=True)
        return (
            [each.partition_id for each in (await store.list_ownership(GROUP)).ownerships],
            [each.partition_id for each in await store.list_checkpoints(GROUP)],
        )

    assert result_of(scenario) == (["0"], ["0"])


def test_a_damaged_record_is_refused_by_the_store():
    """As ``read_record`` promises."""

    async def read() -> None:
        container = MemoryContainer()
        container.write(record_blob(home(GROUP), "plan"), {}, b"damaged")
        async with MemoryBlobStore(container) as store:
            await store.read_record(GROUP, "plan")

    with pytest.raises(
        StoreCorruptError, match=r"ns/hub/\$default/member/!records/plan is damaged"
    ):
        run_virtual(read())


def test_the_groups_of_a_hub_are_not_those_of_one_whose_name_begins_with_its_name():
    """Blobs are listed by the beginning of their names."""
    longer = replace(GROUP, eventhub_name=f"{GROUP.eventhub_name}-archive")

    async def scenario(_container: MemoryContainer, store: MemoryBlobStore) -> Any:
        for group in (GROUP, longer):
            await store.claim_ownership(group, [CLAIM])
        return [[found.key for found in await store.list_groups(g)] for g in (GROUP, longer)]

    assert result_of(scenario) == [[GROUP.key], [longer.key]]
