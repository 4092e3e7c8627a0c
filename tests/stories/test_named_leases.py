"""``processor.lease(name)``: a block that runs in one process of the group at a time."""

import asyncio
from itertools import pairwise

import pytest

from eventproc import ConfigurationError, LeaseLostError, StoreReplacedError
from eventproc.runtime.named_lease import NamedLease
from eventproc.testing import StoreFaults
from eventproc.testing.virtual_time import run_virtual
from tests.stories.resources_scene import ResourceScene
from tests.stories.scene import Scene, seconds


class Blocks:
    """The intervals in which blocks ran."""

    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.done = []

    async def run(self, processor, name="report", duration_s=20.0):
        """Run one block; note who, with which epoch, and when."""
        async with processor.lease(name) as held:
            began_s = self.loop.time()
            try:
                await seconds(duration_s)
            finally:
                self.done.append((processor.owner_id, held.epoch, began_s, self.loop.time()))

    def check(self):
        """No two ran at a time, and the epochs rise."""
        for before, after in pairwise(self.done):
            assert before[3] <= after[2], (before, after)
            assert before[1] < after[1], (before, after)


def test_blocks_of_three_processors_run_one_after_the_other():
    """A waiting one begins within a load-balancing interval."""

    async def story():
        scene, blocks = ResourceScene(), Blocks()
        async with scene.processor("x") as x, scene.processor("y") as y, scene.processor("z") as z:
            await asyncio.gather(*(blocks.run(processor) for processor in (x, y, z)))
            blocks.check()
            await asyncio.gather(blocks.run(x), blocks.run(x))  # Twice in one process.
            blocks.check()
        ends = [done[3] for done in blocks.done]
        gaps_s = [began[2] - ended for began, ended in zip(blocks.done[1:], ends, strict=False)]
        return sorted(done[0] for done in blocks.done), max(gaps_s)

    owners, gap_s = run_virtual(story())
    assert owners == ["x", "x", "x", "y", "z"]
    assert gap_s < 12


def test_other_names_do_not_wait():
    """Each name is a lease of its own; it may have any characters."""

    async def story():
        scene, blocks = ResourceScene("a"), Blocks()
        async with scene.processor("x") as x, scene.processor("y") as y:
            await asyncio.gather(blocks.run(x, "a/b"), blocks.run(y, "ä"))
            return [round(done[2]) for done in blocks.done], scene.held()

    (first, second), held = run_virtual(story())
    assert abs(first - second) < 5
    assert sum(map(len, held.values())) == 1  # What the group shares is not concerned.


def test_an_event_processor_has_leases_too():
    """They are no partitions: the group's own records stay as they are."""

    async def story():
        scene, blocks = Scene(2), Blocks()
        async with scene.processor(owner_id="a") as a, scene.processor(owner_id="b") as b:
            await asyncio.gather(blocks.run(a), blocks.run(b))
            blocks.check()
            return len(blocks.done), sorted(scene.owners())

    assert run_virtual(story()) == (2, ["0", "1"])


def test_a_block_whose_lease_is_lost_is_cancelled():
    """Before another processor's block begins, and ``LeaseLostError`` is raised at its end."""

    async def story():
        scene, blocks = ResourceScene(), Blocks()
        async with scene.processor("x") as x, scene.processor("y") as y:
            first = asyncio.create_task(blocks.run(x, duration_s=1000))
            await seconds(5)
            second = asyncio.create_task(blocks.run(y))
            await seconds(15)
            scene.store_by_owner["x"].faults = StoreFaults(request_lost_rate=1.0)
            await asyncio.wait([first, second])
            blocks.check()
            scene.store_by_owner["x"].faults = StoreFaults()
            await seconds(30)
            return first.exception(), second.exception(), [done[0] for done in blocks.done]

    lost, failure, owners = run_virtual(story())
    assert isinstance(lost, LeaseLostError)
    assert "report" in str(lost)
    assert (failure, owners) == (None, ["x", "y"])


def test_a_stop_cancels_the_block_and_gives_the_lease_up():
    """Another processor's block begins soon after."""

    async def story():
        scene, blocks = ResourceScene(), Blocks()
        async with scene.processor("y") as y:
            x = scene.processor("x")
            await x.start()
            first = asyncio.create_task(blocks.run(x, duration_s=1000))
            await seconds(5)
            waiting = asyncio.create_task(blocks.run(y))
            await seconds(15)
            began_s = scene.loop.time()
            await x.stop()
            took_s = scene.loop.time() - began_s
            await asyncio.wait([first, waiting])
            blocks.check()
            return type(first.exception()), took_s, blocks.done[1][2] - began_s

    error, took_s, waited_s = run_virtual(story())
    assert error is LeaseLostError
    assert took_s < 15
    assert waited_s < 12


def test_a_stop_ends_the_wait_for_a_lease():
    """The task that waits gets ``LeaseLostError``."""

    async def story():
        scene, blocks = ResourceScene(), Blocks()
        async with scene.processor("y") as y:
            x = scene.processor("x")
            await x.start()
            first = asyncio.create_task(blocks.run(y, duration_s=100))
            await seconds(5)
            waiting = asyncio.create_task(blocks.run(x))
            await seconds(15)
            await x.stop()
            await asyncio.wait([first, waiting])
            return type(waiting.exception()), len(blocks.done)

    assert run_virtual(story()) == (LeaseLostError, 1)


def test_a_block_that_is_cancelled_or_fails_gives_the_lease_up():
    """Its own error is raised, and the next one gets the lease."""

    async def fail(processor):
        async with processor.lease("report"):
            raise OSError("disk full")

    async def story():
        scene, blocks = ResourceScene(), Blocks()
        async with scene.processor("x") as x:
            with pytest.raises(OSError, match="disk full"):
                await fail(x)
            cancelled = asyncio.create_task(blocks.run(x, duration_s=1000))
            await seconds(10)
            cancelled.cancel()
            await asyncio.wait([cancelled])
            await blocks.run(x)
            blocks.check()
            return cancelled.cancelled(), len(blocks.done)

    assert run_virtual(story()) == (True, 2)


def test_a_lease_needs_a_running_processor():
    """The message says where to use it."""

    async def story():
        scene = ResourceScene()
        with pytest.raises(ConfigurationError, match="async with processor"):
            scene.processor("x").lease("report")

    run_virtual(story())


def test_a_store_without_an_answer_is_an_error_at_once():
    """Waiting would hide it."""

    async def story():
        scene = ResourceScene()
        async with scene.processor("x") as x:
            await seconds(15)
            scene.store_by_owner["x"].faults = StoreFaults(request_lost_rate=1.0)
            with pytest.raises(Exception, match="no answer") as failure:
                async with x.lease("report"):
                    pass
            scene.store_by_owner["x"].faults = StoreFaults()
            return type(failure.value).__name__

    assert run_virtual(story()) == "StoreUnavailableError"


def test_a_block_may_stop_its_own_processor():
    """It gives the lease up and goes on without it."""

    async def story():
        scene, blocks = ResourceScene(), Blocks()
        async with scene.processor("y") as y:
            x = scene.processor("x")
            await x.start()
            async with x.lease("report") as held:
                waiting = asyncio.create_task(blocks.run(y))
                await seconds(15)
                began_s = scene.loop.time()
                await x.stop()
                took_s = scene.loop.time() - began_s
                is_held = held.is_held
                await seconds(15)
                began = bool(blocks.done) or waiting.done() is False
            await waiting
        return took_s < 15, is_held, began, blocks.done[0][2] - began_s < 12

    assert run_virtual(story()) == (True, False, True, True)


def test_a_lease_that_was_never_entered_does_not_hold_up_a_stop():
    """It has nothing to give up."""

    async def story():
        scene = ResourceScene()
        async with scene.processor("x") as x:
            unused = x.lease("report")
            await x.stop()
            del unused
            return scene.loop.time()

    assert run_virtual(story()) < 15


class StubMember:
    """A member of the lease's group that ends by itself, with an error or without one."""

    def __init__(self, error):
        self.error = error
        self.stop_count = 0

    async def start(self):
        """Begin."""

    async def finished(self):
        """End after a second."""
        await seconds(1)

    async def stop(self):
        """Raise the error that ended it."""
        self.stop_count += 1
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("error", [None, StoreReplacedError("the file was deleted")])
def test_a_wait_ends_with_the_error_that_ended_its_member(error):
    """Without one, the lease counts as lost."""

    async def story():
        member = StubMember(error)
        with pytest.raises((LeaseLostError, StoreReplacedError)) as failure:
            async with NamedLease("report", lambda _: member):
                raise AssertionError("nobody has the lease")
        return failure.value, asyncio.get_running_loop().time(), member.stop_count

    raised, at_s, stop_count = run_virtual(story())
    assert raised is error if error is not None else isinstance(raised, LeaseLostError)
    assert (at_s, stop_count) == (1.0, 1)
