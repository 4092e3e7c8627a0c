"""The handler's calls: repeated in place when they fail, with a state that never counts twice."""

import asyncio
from datetime import timedelta
from itertools import pairwise

from eventproc import Backoff, CheckpointPolicy, StateTooLargeError
from eventproc.models import STATE_BYTES_MAX
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Noting, Scene, seconds

MANUAL = CheckpointPolicy.manual()
QUICK = Backoff(initial=timedelta(seconds=1), maximum=timedelta(seconds=4))


def test_a_failed_batch_comes_again_in_place_and_in_order():
    """The wait grows, ``process_error`` is told each time, and nothing overtakes."""

    async def story():
        scene = Scene()
        times, errors = [], []

        class Failing(Noting):
            async def process_events(self, context, events):
                times.append(asyncio.get_running_loop().time())
                if len(times) <= 4:
                    raise RuntimeError(len(times))
                await super().process_events(context, events)

            async def process_error(self, context, error):
                errors.append(error.args[0])

        scene.publish(3)
        async with scene.processor(lambda: Failing(scene), handler_backoff=QUICK):
            await seconds(1)
            scene.publish(2)
            await seconds(30)
        return scene, times, errors

    scene, times, errors = run_virtual(story())
    waits = [later - earlier for earlier, later in pairwise(times)][:4]

    assert scene.numbers() == [0, 1, 2, 3, 4]
    assert errors == [1, 2, 3, 4]
    for wait, whole in zip(waits, [1, 2, 4, 4], strict=True):
        assert whole / 2 <= wait <= whole + 0.001


def test_initialize_is_tried_again_before_any_event():
    """A handler that cannot get ready gets no event."""

    async def story():
        scene = Scene()
        calls = []

        class Slow(Noting):
            async def initialize(self, context):
                calls.append("initialize")
                if len(calls) < 3:
                    raise RuntimeError("not yet")

            async def process_events(self, context, events):
                calls.append("events")
                await super().process_events(context, events)

        scene.publish(1)
        async with scene.processor(lambda: Slow(scene)):
            await seconds(10)
        return calls

    assert run_virtual(story()) == ["initialize", "initialize", "initialize", "events"]


def test_an_error_handler_that_fails_stops_nothing():
    """Its own error is logged, and the batch comes again."""

    async def story():
        scene = Scene()

        class Hopeless(Noting):
            failed = False

            async def process_events(self, context, events):
                if not self.failed:
                    self.failed = True
                    raise RuntimeError
                await super().process_events(context, events)

            async def process_error(self, context, error):
                raise ValueError

        scene.publish(2)
        async with scene.processor(lambda: Hopeless(scene)):
            await seconds(5)
        return scene.numbers()

    assert run_virtual(story()) == [0, 1]


def test_events_that_were_checkpointed_in_a_failed_call_do_not_come_again():
    """``context.checkpoint(event)`` says that everything up to it is handled."""

    async def story():
        scene = Scene()

        class Half(Noting):
            failed = False

            async def process_events(self, context, events):
                await super().process_events(context, events[:2])
                await context.checkpoint(events[:2][-1])
                if not self.failed:
                    self.failed = True
                    raise RuntimeError
                await super().process_events(context, events[2:])

        scene.publish(4)
        async with scene.processor(lambda: Half(scene)):
            await seconds(5)
        return scene.numbers()

    assert run_virtual(story()) == [0, 1, 2, 3]


class Counting(Noting):
    """Counts events in its state, and fails when it is told to."""

    fails = 0

    async def process_events(self, context, events):
        """Count, then perhaps fail."""
        for _ in events:
            context.state = str(int(context.state or b"0") + 1).encode()
        if Counting.fails:
            Counting.fails -= 1
            raise RuntimeError
        await super().process_events(context, events)


def test_a_failed_call_leaves_no_trace_in_the_state():
    """Its events come again, and must not be counted twice."""

    async def story():
        scene = Scene()
        Counting.fails = 3
        scene.publish(5)
        async with scene.processor(lambda: Counting(scene)):
            await seconds(10)
        return scene.checkpoint()

    checkpoint = run_virtual(story())

    assert (checkpoint.sequence_number, checkpoint.state) == (4, b"5")
    assert checkpoint.state_sequence_number == 4


def test_a_checkpoint_in_the_middle_of_a_call_has_the_state_of_its_position():
    """Without an event it stands for the call before, and so does the state it stores."""

    async def story():
        scene = Scene()
        stored = []

        class Middle(Noting):
            async def process_events(self, context, events):
                context.state = str(int(context.state or b"0") + len(events)).encode()
                await context.checkpoint()
                stored.append(scene.checkpoint())
                await super().process_events(context, events)

        async with scene.processor(lambda: Middle(scene), checkpoint_policy=MANUAL):
            for _ in range(2):
                scene.publish(3)
                await seconds(15)
        return stored

    first, second = run_virtual(story())

    assert (first.sequence_number, first.state) == (-1, None)
    assert (second.sequence_number, second.state) == (2, b"3")


def test_state_is_there_again_on_the_next_owner():
    """It travels with the position."""

    async def story():
        scene = Scene()
        Counting.fails = 0
        for owner_id in ("a", "b"):
            scene.publish(3)
            async with scene.processor(lambda: Counting(scene), owner_id=owner_id):
                await seconds(20)
        return scene.checkpoint()

    assert run_virtual(story()).state == b"6"


def test_state_that_is_too_large_is_refused_where_it_is_set():
    """The handler hears of it at once, not at some later checkpoint."""

    async def story():
        scene = Scene()
        errors = []

        class Greedy(Noting):
            async def process_events(self, context, events):
                context.state = b"x" * (STATE_BYTES_MAX + 1)

            async def process_error(self, context, error):
                errors.append(error)

        scene.publish(1)
        async with scene.processor(lambda: Greedy(scene)):
            await seconds(0.5)
        return errors

    assert isinstance(run_virtual(story())[0], StateTooLargeError)
