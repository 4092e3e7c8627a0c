"""A store that forwards to another one behaves like it, except for the calls that it changes."""

import inspect

import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc.errors import StoreRejectedError
from eventproc.models import (
    CheckpointUpdate,
    ConsumerGroup,
    GroupRecord,
    Member,
    OwnershipClaim,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore, ForwardingStore
from eventproc.testing import check_checkpoint_store

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
CLAIM = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
MEMBER = Member(owner_id="a", incarnation="1")
UPDATE = CheckpointUpdate(
    partition_id="0", sequence_number=1, offset="1", replaces=None, writer="a"
)

CALLS = [
    (CheckpointStore.list_ownership, (GROUP,)),
    (CheckpointStore.claim_ownership, (GROUP, [CLAIM])),
    (CheckpointStore.list_members, (GROUP,)),
    (CheckpointStore.announce_member, (GROUP, MEMBER)),
    (CheckpointStore.withdraw_member, (GROUP, MEMBER)),
    (CheckpointStore.list_checkpoints, (GROUP,)),
    (CheckpointStore.list_groups, ()),
    (CheckpointStore.read_checkpoint, (GROUP, "0")),
    (CheckpointStore.update_checkpoint, (GROUP, UPDATE)),
    (CheckpointStore.read_record, (GROUP, "plan")),
    (CheckpointStore.write_record, (GROUP, GroupRecord(name="plan", content=b"1"))),
]


class RecordingStore(ForwardingStore):
    """Records the name of each call, and refuses all calls while ``is_refusing`` is set."""

    def __init__(self):
        super().__init__(MemoryCheckpointStore())
        self.names = []
        self.is_refusing = False

    async def forward(self, method, *args, **options):
        """Record, then refuse or forward."""
        self.names.append(method.__name__)
        if self.is_refusing:
            raise StoreRejectedError("no right")
        return await super().forward(method, *args, **options)


async def test_every_call_goes_through_forward():
    """All that ask or write, also those that are added later: not opening, closing, watching."""
    names = [
        name
        for name, value in vars(CheckpointStore).items()
        if inspect.iscoroutinefunction(inspect.unwrap(value))
        and name not in {"open", "close", "watch"}
    ]
    async with RecordingStore() as store:
        for method, arguments in CALLS:
            await getattr(store, method.__name__)(*arguments)

    assert store.names == [method.__name__ for method, _ in CALLS]
    assert sorted(store.names) == sorted(names)


async def test_a_forwarding_store_passes_the_contract_of_stores():
    """If the store behind it does."""
    account = MemoryAccount()
    await check_checkpoint_store(
        lambda: ForwardingStore(MemoryCheckpointStore(account)), records=10, rounds=2
    )


@pytest.mark.parametrize(("method", "arguments"), CALLS)
async def test_a_write_that_cannot_be_forwarded_is_unknown_and_a_read_raises(method, arguments):
    """The caller of a write always gets an outcome."""
    async with RecordingStore() as store:
        store.is_refusing = True
        call = getattr(store, method.__name__)(*arguments)
        if method.__name__.startswith(("list", "read")):
            with pytest.raises(StoreRejectedError, match="no right"):
                await call
            return
        answer = await call

    if method is CheckpointStore.withdraw_member:
        assert answer is WriteOutcome.UNKNOWN
        return
    (result,) = answer if isinstance(answer, list) else [answer]
    assert result.outcome is WriteOutcome.UNKNOWN
    assert isinstance(result.error, StoreRejectedError)
