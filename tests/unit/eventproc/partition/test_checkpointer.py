"""Who may write a checkpoint: the owner who can prove it, and never the one before."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import Backoff, CheckpointPolicy, OwnershipLostError, StoreUnavailableError
from eventproc.logs import get_logger
from eventproc.models import CheckpointResult, CheckpointUpdate, SequenceRange, WriteOutcome
from eventproc.partition.checkpointer import Checkpointer, Progress
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene

MANUAL = CheckpointPolicy.manual()
EAGER = CheckpointPolicy(max_events=1, max_uncommitted_events=10)


class Shelf:
    """One partition's checkpoint, and the pumps that contend for it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.store = MemoryCheckpointStore(scene.account)
        self.owner = "a"
        self.before_verify: Callable[[], object] = lambda: None
        self.unanswered_count = 0
        self.is_failing = False
        self.write_s = 0.0
        self.in_flight_count = 0
        self.in_flight_count_max = 0
        self._pump_count = 0

    def checkpointer(self, owner: str, policy: CheckpointPolicy = MANUAL) -> Checkpointer:
        """The one of a pump of this owner."""

        async def verify() -> bool:
            is_owner = self.owner == owner
            result = self.before_verify()
            if asyncio.iscoroutine(result):
                await result
            return is_owner

        self._pump_count += 1
        return Checkpointer(
            "0",
            writer=f"{owner}/1/{self._pump_count}",
            read=lambda: self.store.read_checkpoint(self.scene.group, "0"),
            write=self._write,
            verify=verify,
            policy=policy,
            backoff=Backoff(),
            log=get_logger("eventproc.test"),
        )

    async def _write(self, update: CheckpointUpdate) -> CheckpointResult:
        # As on a thread of its own: who stops waiting does not stop the write.
        return await asyncio.shield(asyncio.ensure_future(self._carry_out(update)))

    async def _carry_out(self, update: CheckpointUpdate) -> CheckpointResult:
        self.in_flight_count += 1
        self.in_flight_count_max = max(self.in_flight_count, self.in_flight_count_max)
        try:
            await asyncio.sleep(self.write_s)
            if self.is_failing:
                raise StoreUnavailableError("nobody answers")
            result = await self.store.update_checkpoint(self.scene.group, update)
        finally:
            self.in_flight_count -= 1
        if self.unanswered_count == 0:
            return result
        self.unanswered_count -= 1
        return CheckpointResult(outcome=WriteOutcome.UNKNOWN)


async def write(checkpointer: Checkpointer, number: int) -> None:
    """Note progress, and see it stored."""
    checkpointer.note(Progress(sequence_number=number, offset=str(number), state=None), 1)
    await checkpointer.flush()


def writer_of(scene: Scene) -> str | None:
    """Who wrote what stands in the store."""
    checkpoint = scene.checkpoint()
    return None if checkpoint is None else checkpoint.writer


async def two(scene: Scene) -> tuple[Shelf, Checkpointer, Checkpointer]:
    """A former owner that has written once, and the next one, which did not begin yet."""
    shelf = Shelf(scene)
    await shelf.store.open()
    former, following = shelf.checkpointer("a"), shelf.checkpointer("b")
    await former.adopt()
    await write(former, 5)
    return shelf, former, following


def test_adoption_shuts_the_former_owner_out():
    """Although the new owner has stored nothing of its own yet."""

    async def story():
        scene = Scene()
        shelf, former, following = await two(scene)
        shelf.owner = "b"
        found = await following.adopt()
        with pytest.raises(OwnershipLostError):
            await write(former, 9)
        assert found is not None
        return found.sequence_number, scene.checkpointed()

    assert run_virtual(story()) == (5, 5)


def test_who_is_told_of_its_loss_writes_no_more():
    """Although no successor has begun, and the write would be taken."""

    async def story():
        scene = Scene()
        _, former, _ = await two(scene)
        former.lose()
        with pytest.raises(OwnershipLostError):
            await write(former, 9)
        return scene.checkpointed()

    assert run_virtual(story()) == 5


def test_a_write_that_nobody_answered_is_not_taken_for_stored():
    """It is read again, and written again: here the first one never arrived."""

    async def story():
        scene = Scene()
        _, former, _ = await two(scene)
        arrives = former._write
        lost: list[CheckpointUpdate] = []

        async def lose_first(update):
            if lost:
                return await arrives(update)
            lost.append(update)
            return CheckpointResult(outcome=WriteOutcome.UNKNOWN)

        former._write = lose_first
        await write(former, 9)
        return len(lost), scene.checkpointed()

    assert run_virtual(story()) == (1, 9)


def test_a_position_that_somebody_else_moved_on_does_not_go_back():
    """A processor of another SDK went further, while we still own the partition."""

    async def story():
        scene = Scene()
        shelf, former, _ = await two(scene)
        update = CheckpointUpdate(
            partition_id="0",
            offset="20",
            sequence_number=20,
            replaces=scene.checkpoint(),
            writer="azure",
        )
        await shelf.store.update_checkpoint(scene.group, update)
        await write(former, 9)
        return writer_of(scene), scene.checkpointed()

    assert run_virtual(story()) == ("azure", 20)


def test_an_adoption_that_comes_too_late_is_refused():
    """Between the proof of ownership and the write another one took over."""

    async def story():
        scene = Scene()
        shelf, _, following = await two(scene)
        shelf.owner = "b"

        async def third_takes_over() -> None:
            shelf.before_verify = lambda: None
            shelf.owner = "c"
            await shelf.checkpointer("c").adopt()

        shelf.before_verify = third_takes_over
        with pytest.raises(OwnershipLostError):
            await following.adopt()
        return writer_of(scene)

    assert run_virtual(story()) == "c/1/3"


def test_a_proof_that_is_older_than_the_reading_is_none():
    """A write over what another one wrote needs a proof that came after it was read."""

    async def story():
        scene = Scene()
        shelf, former, following = await two(scene)
        operator = shelf.checkpointer("operator")
        shelf.owner = "operator"
        await operator.adopt()
        shelf.owner = "a"

        async def next_takes_over() -> None:
            shelf.before_verify = lambda: None
            shelf.owner = "b"
            await following.adopt()

        shelf.before_verify = next_takes_over
        with pytest.raises(OwnershipLostError):
            await write(former, 9)
        return writer_of(scene), scene.checkpointed()

    assert run_virtual(story()) == ("b/1/2", 5)


def test_what_piles_up_goes_in_one_write():
    """Each write carries the newest position; those who wait for older ones are served by it."""

    async def story():
        scene = Scene()
        _, former, _ = await two(scene)
        before = scene.account.new_etag()
        await asyncio.gather(*(write(former, number) for number in range(6, 30)))
        return int(scene.account.new_etag(), 16) - int(before, 16) - 1, scene.checkpointed()

    writes, stored = run_virtual(story())

    assert stored == 29
    assert writes <= 2


def test_an_adoption_without_an_answer_is_not_taken_for_done():
    """Nobody could tell whether the first attempt at the write took effect; the next one tells."""

    async def story():
        scene = Scene()
        shelf, _, _ = await two(scene)
        shelf.owner = "b"
        shelf.unanswered_count = 1
        following = shelf.checkpointer("b")
        with pytest.raises(StoreUnavailableError, match="did not say"):
            await following.adopt()
        found = await following.adopt()
        await write(following, 6)
        return found, shelf.unanswered_count, scene.checkpointed()

    found, unanswered_count, stored = run_virtual(story())

    assert found is not None
    assert (found.sequence_number, unanswered_count, stored) == (5, 0, 6)


def test_a_count_is_adopted_and_taken_back_in_good_order():
    """At the very position, where nothing else changed."""

    async def story():
        scene = Scene()
        shelf, former, following = await two(scene)
        former.note(Progress(sequence_number=5, offset="5", state=None, delivery_count=2), 0)
        await former.flush()
        shelf.owner = "b"
        found = await following.adopt()
        await write(following, 5)
        return found, scene.checkpoint()

    found, stored = run_virtual(story())

    assert (found.sequence_number, found.delivery_count) == (5, 2)
    assert (stored.sequence_number, stored.delivery_count) == (5, 0)


def test_what_is_done_above_the_position_is_stored_with_it():
    """A later pump finds it when it adopts the checkpoint."""

    async def story():
        scene = Scene()
        shelf, former, following = await two(scene)
        done = (SequenceRange(7, 8), SequenceRange(11, 11))
        progress = Progress(sequence_number=5, offset="5", state=None, completed=done)
        former.note(progress, 3)
        await former.flush()
        shelf.owner = "b"
        found = await following.adopt()
        return found is not None and found.completed == done

    assert run_virtual(story())


@asynccontextmanager
async def writing(checkpointer: Checkpointer) -> AsyncIterator[None]:
    """Write in the background, as under a pump."""
    task = asyncio.create_task(checkpointer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def handle(checkpointer: Checkpointer, number: int) -> None:
    """Note one more event."""
    checkpointer.note(Progress(sequence_number=number, offset=str(number), state=None), 1)


def test_one_write_at_a_time_whoever_asks():
    """The policy, the handler and the close ask at once, and one gives up in the middle."""

    async def story():
        scene = Scene()
        shelf = Shelf(scene)
        shelf.write_s = 1.0
        await shelf.store.open()
        checkpointer = shelf.checkpointer("a", EAGER)
        await checkpointer.adopt()
        async with writing(checkpointer):
            handle(checkpointer, 0)
            await asyncio.sleep(0.1)
            impatient = [asyncio.create_task(write(checkpointer, n)) for n in (1, 2, 3)]
            await asyncio.sleep(1.5)
            for task in impatient:
                task.cancel()
            await write(checkpointer, 4)
        return shelf.in_flight_count_max, scene.checkpointed()

    assert run_virtual(story()) == (1, 4)


def test_a_write_that_was_given_up_is_waited_for():
    """Its caller was cancelled, but it may still take effect: the next one comes after it."""

    async def story():
        scene = Scene()
        shelf = Shelf(scene)
        shelf.write_s = 1.0
        await shelf.store.open()
        checkpointer = shelf.checkpointer("a")
        await checkpointer.adopt()
        handle(checkpointer, 0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await checkpointer.flush()
        await write(checkpointer, 1)
        return shelf.in_flight_count_max, scene.checkpointed()

    assert run_virtual(story()) == (1, 1)


def test_a_failing_store_holds_handling_up_only_at_the_limit():
    """Until then it goes on, and when the store is back the newest position is stored."""

    async def story():
        scene = Scene()
        shelf = Shelf(scene)
        await shelf.store.open()
        checkpointer = shelf.checkpointer("a", EAGER)
        await checkpointer.adopt()
        shelf.is_failing = True
        loop = asyncio.get_running_loop()
        held_up_at = []
        async with writing(checkpointer):
            for number in range(25):
                before_s = loop.time()
                if number == 10:
                    loop.call_later(60, setattr, shelf, "is_failing", False)
                await checkpointer.until_room()
                if loop.time() > before_s:
                    held_up_at.append((number, scene.checkpointed()))
                handle(checkpointer, number)
                await asyncio.sleep(0.001)
            await checkpointer.flush()
        return held_up_at, scene.checkpointed()

    assert run_virtual(story()) == ([(10, 9)], 24)


def test_who_waits_for_room_hears_of_a_loss():
    """There will never be any."""

    async def story():
        shelf = Shelf(Scene())
        await shelf.store.open()
        checkpointer = shelf.checkpointer("a", EAGER)
        for number in range(10):
            handle(checkpointer, number)
        asyncio.get_running_loop().call_later(1, checkpointer.lose)
        with pytest.raises(OwnershipLostError):
            await checkpointer.until_room()

    run_virtual(story())
