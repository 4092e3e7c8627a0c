"""Moving a checkpoint under a running group: its owner continues from there, nowhere else."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from random import Random

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    CheckpointPolicy,
    PartitionContext,
    ReceivedEvent,
    StoreRejectedError,
    StoreUnavailableError,
)
from eventproc._core.delivery.checkpoints import operators_writer
from eventproc.admin import CheckpointExistsError, CheckpointMove, CheckpointMoved, move_checkpoint
from eventproc.models import (
    ALONE,
    NOT_BEGUN,
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    OwnershipClaim,
    SequenceRange,
    WriteOutcome,
)
from eventproc.testing import FaultyCheckpointStore, StoreFaults
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds

EXPIRATION = timedelta(seconds=60)
EVERY_EVENT = CheckpointPolicy(max_events=1)


class Slow(Noting):
    """Takes a second for each event, and counts events in its state."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Count, wait, record."""
        context.state = str(int(context.state or 0) + len(events)).encode()
        await asyncio.sleep(1.0)
        await super().process_events(context, events)


async def move(
    setup: Setup, to: int, *, notifies_owner: bool = True, **changes: object
) -> CheckpointMoved:
    """Move the checkpoint of partition 0 to an event."""
    store = MemoryCheckpointStore(setup.account)
    await store.open()
    expiration = EXPIRATION if notifies_owner else timedelta(seconds=-1)
    asked = CheckpointMove(partition_id="0", offset=str(to), sequence_number=to, **changes)  # type: ignore[arg-type] # what a test wants to change
    return await move_checkpoint(store, setup.group, asked, token=str(to), expiration=expiration)


class CheckpointHistory:
    """Each version of the stored checkpoint."""

    def __init__(self, setup: Setup) -> None:
        self.seen: list[Checkpoint] = []
        self._setup = setup
        self._task = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        while True:
            found = self._setup.checkpoint()
            if found is not None and (not self.seen or self.seen[-1].etag != found.etag):
                self.seen.append(found)
            await asyncio.sleep(0.005)

    def after_the_move(self) -> list[tuple[bool, int | None]]:
        """From the operator's write on: whether each is the operator's, and its position."""
        prefix = operators_writer("")
        texts = [checkpoint.writer or "" for checkpoint in self.seen]
        first = next(at for at, writer in enumerate(texts) if writer.startswith(prefix))
        return [
            (texts[at].startswith(prefix), self.seen[at].sequence_number)
            for at in range(first, len(texts))
        ]


COUNT = 60
NOTICED_WITHIN = 21
"""How many events of one second are handled at most until the next poll."""


@pytest.mark.parametrize(
    ("policy", "notifies_owner"), [(CheckpointPolicy.manual(), True), (EVERY_EVENT, False)]
)
@pytest.mark.parametrize("to", [4, 49])
def test_a_running_owner_continues_from_the_operators_checkpoint(to, policy, notifies_owner):
    """Back or ahead: at its next poll if it is notified, or else at its next checkpoint.

    Events in flight are dropped, and their progress does not replace the operator's checkpoint.
    """

    async def scenario():
        setup = Setup()
        setup.publish(COUNT)
        settings = {"checkpoint_policy": policy, "batch_size_max": 1}
        async with setup.processor(lambda: Slow(setup), **settings):
            checkpoint_history = CheckpointHistory(setup)
            while len(setup.handled) < 10:  # noqa: ASYNC110 - on virtual time
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.5)
            moved = await move(setup, to, notifies_owner=notifies_owner)
            await seconds(130)
        return (
            setup.numbers(),
            checkpoint_history.after_the_move(),
            moved.notified_owner_id,
            setup.checkpoint(),
        )

    handled, writes, notified, last = run_virtual(scenario())
    moved_at = next(at for at, number in enumerate(handled) if at != number)

    assert notified == ("a" if notifies_owner else None)
    assert 10 <= moved_at <= NOTICED_WITHIN if notifies_owner else moved_at == 11
    assert handled[moved_at:] == list(range(to + 1, COUNT))
    assert writes[:2] == [(True, to), (False, to)]
    assert [number for _, number in writes[1:]] == sorted(number for _, number in writes[1:])
    assert last is not None
    assert (last.sequence_number, last.state) == (COUNT - 1, str(COUNT - 1 - to).encode())


def test_a_start_after_a_move_says_that_an_operator_moved_the_checkpoint(caplog):
    """The next start, after a stop without a move, does not say it again."""

    async def scenario():
        setup = Setup()
        setup.publish(COUNT)
        for _ in range(2):
            async with setup.processor():
                await seconds(5)
            if setup.checkpointed() == COUNT - 1:
                await move(setup, 3)
        async with setup.processor():
            await seconds(5)

    caplog.set_level("INFO")
    run_virtual(scenario())
    started = [r for r in caplog.records if getattr(r, "event", "") == "partition_started"]
    marks = [(r.sequence_number, getattr(r, "is_moved_by_operator", None)) for r in started]

    assert marks[0] == (None, None)
    assert (3, True) in marks
    assert all(is_moved is None for number, is_moved in marks if number != 3)


def test_a_move_drops_completed_ranges_and_the_isolation():
    """They belong to the position before. State is kept only if the operator asks for it."""

    async def scenario():
        setup = Setup()
        store = MemoryCheckpointStore(setup.account)
        await store.open()
        update = CheckpointUpdate(
            partition_id="0",
            offset="7",
            sequence_number=7,
            replaces=None,
            writer="a/1/1",
            state=b"seven",
            completed=(SequenceRange(9, 9),),
            isolation=ALONE,
        )
        await store.update_checkpoint(setup.group, update)
        kept = (await move(setup, 3, state=None)).checkpoint
        dropped = (await move(setup, 5)).checkpoint
        return kept, dropped

    kept, dropped = run_virtual(scenario())

    assert (kept.completed, kept.isolation) == ((), NOT_BEGUN)
    assert (kept.sequence_number, kept.state, kept.state_sequence_number) == (3, b"seven", 7)
    assert (dropped.sequence_number, dropped.state) == (5, None)


@pytest.mark.parametrize("is_expired", [True, False])
def test_only_a_live_owner_is_notified(is_expired):
    """Writing the ownership record of a dead owner would make it look alive again."""

    async def scenario():
        setup = Setup()
        store = MemoryCheckpointStore(setup.account)
        await store.open()
        claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
        (claimed,) = await store.claim_ownership(setup.group, [claim])
        await seconds(61 if is_expired else 59)
        moved = await move(setup, 3)
        (held,) = (await store.list_ownership(setup.group)).ownerships
        is_untouched = claimed.ownership is not None and held.etag == claimed.ownership.etag
        return moved.notified_owner_id, held.owner_id, is_untouched

    assert run_virtual(scenario()) == ((None, "a", True) if is_expired else ("a", "a", False))


def test_a_repeated_move_takes_effect_once(seed):
    """Each attempt may fail before or after it took effect; one write of the operator is stored."""

    async def scenario():
        setup = Setup()
        store = FaultyCheckpointStore(
            MemoryCheckpointStore(setup.account),
            Random(seed),
            StoreFaults(request_lost_rate=0.3, answer_lost_rate=0.3),
        )
        await store.open()
        checkpoint_history = CheckpointHistory(setup)
        await asyncio.sleep(0.01)
        while True:
            try:
                to_three = CheckpointMove(partition_id="0", offset="3", sequence_number=3)
                await move_checkpoint(
                    store, setup.group, to_three, token="t", expiration=EXPIRATION
                )
                break
            except StoreUnavailableError:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        return checkpoint_history.after_the_move()

    assert run_virtual(scenario()) == [(True, 3)]


class RejectingStore(MemoryCheckpointStore):
    """Rejects checkpoints, or claims."""

    rejects = "checkpoints"
    attempt_count = 0

    async def update_checkpoint(self, group, update):
        """Write it, or reject it."""
        if self.rejects != "checkpoints":
            return await super().update_checkpoint(group, update)
        self.attempt_count += 1
        error = StoreRejectedError("no right to write")
        return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=error)

    async def claim_ownership(self, group, claims):
        """Write them, or reject them."""
        if self.rejects != "claims":
            return await super().claim_ownership(group, claims)
        self.attempt_count += 1
        error = StoreRejectedError("no right to write")
        return [ClaimResult(claim=c, outcome=WriteOutcome.UNKNOWN, error=error) for c in claims]


@pytest.mark.parametrize("rejects", ["checkpoints", "claims"])
def test_a_move_that_the_store_rejects_is_not_repeated(rejects):
    """It is not an outage: the error of the store is raised."""

    async def scenario():
        setup = Setup()
        store = RejectingStore(setup.account)
        await store.open()
        async with setup.processor():
            await seconds(10)
            store.rejects = rejects
            asked = CheckpointMove(partition_id="0", offset="3", sequence_number=3)
            with pytest.raises(StoreRejectedError, match="no right to write"):
                await move_checkpoint(store, setup.group, asked, token="t", expiration=EXPIRATION)
        return store.attempt_count

    assert run_virtual(scenario()) == 1


def test_a_move_that_is_not_written_restarts_no_owner():
    """Told too early, the owner would begin again where it was, and write over the move."""

    async def scenario():
        setup = Setup()
        store = RejectingStore(setup.account)
        await store.open()
        async with setup.processor() as processor:
            await seconds(10)
            before = setup.account.records(setup.group).ownership_by_partition["0"]
            asked = CheckpointMove(partition_id="0", offset="3", sequence_number=3)
            with pytest.raises(StoreRejectedError):
                await move_checkpoint(store, setup.group, asked, token="t", expiration=EXPIRATION)
            after = setup.account.records(setup.group).ownership_by_partition["0"]
            await seconds(15)
            return after == before, processor.statistics().lost_count

    assert run_virtual(scenario()) == (True, 0)


async def test_a_move_that_only_creates_keeps_a_checkpoint_that_exists():
    """A second move with ``replaces=False`` is an error; a repetition of the first one is not."""
    store = MemoryCheckpointStore()
    group = ConsumerGroup(fully_qualified_namespace="host", eventhub_name="orders", name="$Default")
    await store.open()

    async def create(number: int, token: str) -> CheckpointMoved:
        asked = CheckpointMove(partition_id="0", offset=str(number), sequence_number=number)
        return await move_checkpoint(
            store, group, asked, token=token, expiration=EXPIRATION, replaces=False
        )

    await create(5, "first")
    repeated = await create(5, "first")
    with pytest.raises(CheckpointExistsError, match="at number 5"):
        await create(9, "second")
    found = await store.read_checkpoint(group, "0")
    await store.close()

    assert repeated.checkpoint.sequence_number == 5
    assert found is not None
    assert found.sequence_number == 5


def test_the_owner_is_notified_with_the_epoch_that_it_has():
    """Fencing tokens never fall, also not until the owner has claimed its partition again."""

    async def scenario():
        setup = Setup()
        setup.publish(COUNT)

        def epoch() -> int:
            return setup.account.records(setup.group).ownership_by_partition["0"].epoch

        async with setup.processor():
            await seconds(30)
            before = epoch()
            await move(setup, 4)
            return before, epoch()

    before, after = run_virtual(scenario())

    assert before == after > 0
