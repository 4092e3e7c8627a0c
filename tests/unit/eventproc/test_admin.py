"""An operator moves checkpoints while a group is at work: it goes on from there, and only there."""

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
from eventproc.admin import CheckpointMove, CheckpointMoved, move_checkpoint
from eventproc.core.checkpoint_rules import operators_writer
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    LeaseMode,
    Member,
    MemberStatus,
    OwnershipClaim,
    SequenceRange,
    WriteOutcome,
)
from eventproc.testing import FaultyCheckpointStore, StoreFaults
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Noting, Scene, seconds

EXPIRATION = timedelta(seconds=60)
EVERY_EVENT = CheckpointPolicy(max_events=1)


class Slow(Noting):
    """Takes a second for each event, and keeps a count."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Count, wait, note."""
        context.state = str(int(context.state or 0) + len(events)).encode()
        await asyncio.sleep(1.0)
        await super().process_events(context, events)


async def move(
    scene: Scene, to: int, *, is_owner_told: bool = True, **changes: object
) -> CheckpointMoved:
    """Move the checkpoint of partition 0 to an event."""
    store = MemoryCheckpointStore(scene.account)
    await store.open()
    expiration = EXPIRATION if is_owner_told else timedelta(seconds=-1)
    asked = CheckpointMove(partition_id="0", offset=str(to), sequence_number=to, **changes)  # type: ignore[arg-type] # what a test wants to change
    return await move_checkpoint(store, scene.group, asked, token=str(to), expiration=expiration)


class Watch:
    """Every checkpoint that ever stood in the store, as far as anybody could see."""

    def __init__(self, scene: Scene) -> None:
        self.seen: list[Checkpoint] = []
        self._scene = scene
        self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while True:
            found = self._scene.checkpoint()
            if found is not None and (not self.seen or self.seen[-1].etag != found.etag):
                self.seen.append(found)
            await asyncio.sleep(0.001)

    def after_the_move(self) -> list[tuple[bool, int | None]]:
        """From the operator's write on: whether each is of the operator, and its position."""
        mark = operators_writer("")
        texts = [checkpoint.writer or "" for checkpoint in self.seen]
        first = next(at for at, writer in enumerate(texts) if writer.startswith(mark))
        return [
            (texts[at].startswith(mark), self.seen[at].sequence_number)
            for at in range(first, len(texts))
        ]


COUNT = 60
TOLD_WITHIN = {LeaseMode.PARTITION: 21, LeaseMode.SESSION: 42}
"""How many events of a second each are handled at most: a look, or half an expiration later."""


@pytest.mark.parametrize(
    ("policy", "is_owner_told", "mode"),
    [
        (CheckpointPolicy.manual(), True, LeaseMode.PARTITION),
        (CheckpointPolicy.manual(), True, LeaseMode.SESSION),
        (EVERY_EVENT, False, LeaseMode.PARTITION),
    ],
)
@pytest.mark.parametrize("to", [4, 49])
def test_a_running_owner_begins_where_the_operator_says(to, policy, is_owner_told, mode):
    """Back or forward: told at its next look, or else at its next checkpoint.

    What it held in flight is dropped, and nothing of it is stored over the operator's word.
    """

    async def story():
        scene = Scene()
        scene.publish(COUNT)
        settings = {"checkpoint_policy": policy, "batch_size_max": 1, "lease_mode": mode}
        async with scene.processor(lambda: Slow(scene), **settings):
            watch = Watch(scene)
            while len(scene.handled) < 10:  # noqa: ASYNC110 - on virtual time
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.5)
            moved = await move(scene, to, is_owner_told=is_owner_told)
            await seconds(130)
        return scene.numbers(), watch.after_the_move(), moved.notified_owner_id, scene.checkpoint()

    handled, writes, told, last = run_virtual(story())
    cut = next(at for at, number in enumerate(handled) if at != number)

    assert told == ("a" if is_owner_told else None)
    assert 10 <= cut <= TOLD_WITHIN[mode] if is_owner_told else cut == 11
    assert handled[cut:] == list(range(to + 1, COUNT))
    assert writes[:2] == [(True, to), (False, to)]
    assert [number for _, number in writes[1:]] == sorted(number for _, number in writes[1:])
    assert last is not None
    assert (last.sequence_number, last.state) == (COUNT - 1, str(COUNT - 1 - to).encode())


def test_nothing_of_another_position_is_left():
    """Not what was done above it, nor the count of deliveries; the state only if asked for."""

    async def story():
        scene = Scene()
        store = MemoryCheckpointStore(scene.account)
        await store.open()
        update = CheckpointUpdate(
            partition_id="0",
            offset="7",
            sequence_number=7,
            replaces=None,
            writer="a/1/1",
            state=b"seven",
            completed=(SequenceRange(9, 9),),
            delivery_count=3,
        )
        await store.update_checkpoint(scene.group, update)
        kept = (await move(scene, 3, state=None)).checkpoint
        dropped = (await move(scene, 5)).checkpoint
        return kept, dropped

    kept, dropped = run_virtual(story())

    assert (kept.completed, kept.delivery_count) == ((), 0)
    assert (kept.sequence_number, kept.state, kept.state_sequence_number) == (3, b"seven", 7)
    assert (dropped.sequence_number, dropped.state) == (5, None)


@pytest.mark.parametrize("is_expired", [True, False])
def test_only_who_lives_is_told(is_expired):
    """A touch would give a dead owner's record another life."""

    async def story():
        scene = Scene()
        store = MemoryCheckpointStore(scene.account)
        await store.open()
        claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
        (claimed,) = await store.claim_ownership(scene.group, [claim])
        await seconds(61 if is_expired else 59)
        moved = await move(scene, 3)
        (held,) = (await store.list_ownership(scene.group)).ownerships
        is_untouched = claimed.ownership is not None and held.etag == claimed.ownership.etag
        return moved.notified_owner_id, held.owner_id, is_untouched

    assert run_virtual(story()) == ((None, "a", True) if is_expired else ("a", "a", False))


@pytest.mark.parametrize(
    ("age_s", "status", "is_told"),
    [
        (59, MemberStatus.ACTIVE, True),
        (61, MemberStatus.ACTIVE, False),
        (59, MemberStatus.DEAD, False),
    ],
)
def test_a_session_keeps_its_owner_alive(age_s, status, is_told):
    """However old the ownership record is: nobody renews that."""

    async def story():
        scene = Scene()
        store = MemoryCheckpointStore(scene.account)
        await store.open()
        claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
        await store.claim_ownership(scene.group, [claim])
        await seconds(1000)
        session = Member(owner_id="a", incarnation="1", status=status, lease_mode=LeaseMode.SESSION)
        await store.announce_member(scene.group, session)
        await seconds(age_s)
        return (await move(scene, 3)).notified_owner_id

    assert run_virtual(story()) == ("a" if is_told else None)


def test_an_answer_that_is_lost_does_not_move_it_twice(seed):
    """Every attempt may fail, before or after it took effect; in the end it stands there once."""

    async def story():
        scene = Scene()
        store = FaultyCheckpointStore(
            MemoryCheckpointStore(scene.account),
            Random(seed),
            StoreFaults(request_lost_rate=0.3, answer_lost_rate=0.3),
        )
        await store.open()
        watch = Watch(scene)
        await asyncio.sleep(0.01)
        while True:
            try:
                to_three = CheckpointMove(partition_id="0", offset="3", sequence_number=3)
                await move_checkpoint(
                    store, scene.group, to_three, token="t", expiration=EXPIRATION
                )
                break
            except StoreUnavailableError:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        return watch.after_the_move()

    assert run_virtual(story()) == [(True, 3)]


class Refusing(MemoryCheckpointStore):
    """Takes no checkpoint, or no claim."""

    refuses = "checkpoints"
    attempt_count = 0

    async def update_checkpoint(self, group, update):
        """Refuse it, or take it."""
        if self.refuses != "checkpoints":
            return await super().update_checkpoint(group, update)
        self.attempt_count += 1
        error = StoreRejectedError("no right to write")
        return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=error)

    async def claim_ownership(self, group, claims):
        """Refuse them, or take them."""
        if self.refuses != "claims":
            return await super().claim_ownership(group, claims)
        self.attempt_count += 1
        error = StoreRejectedError("no right to write")
        return [ClaimResult(claim=c, outcome=WriteOutcome.UNKNOWN, error=error) for c in claims]


@pytest.mark.parametrize("refuses", ["checkpoints", "claims"])
def test_a_move_that_the_store_refuses_is_not_tried_again(refuses):
    """It is no outage: the operator hears what the store said."""

    async def story():
        scene = Scene()
        store = Refusing(scene.account)
        await store.open()
        async with scene.processor():
            await seconds(10)
            store.refuses = refuses
            asked = CheckpointMove(partition_id="0", offset="3", sequence_number=3)
            with pytest.raises(StoreRejectedError, match="no right to write"):
                await move_checkpoint(store, scene.group, asked, token="t", expiration=EXPIRATION)
        return store.attempt_count

    assert run_virtual(story()) == 1
