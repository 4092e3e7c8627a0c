"""Handlers, sinks, stores and sources of the user's that do what nobody should."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from eventproc import (
    BlockingPartitionHandler,
    CheckpointPolicy,
    FailureAction,
    FailurePolicy,
    HandlerCancelledError,
    PartitionHandler,
    ProcessorStatistics,
)
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Noting, Scene, seconds, until
from tests.unit.eventproc.partition.test_handler_threads import SHORT

LETTER = FailurePolicy(attempts_max=2, action=FailureAction.DEAD_LETTER)
BOTH = pytest.mark.parametrize("lanes", [1, 3])


def served(
    make: Callable[[Scene], PartitionHandler], *, lanes: int = 1, **settings: Any
) -> tuple[Scene, Sequence[PartitionHandler], ProcessorStatistics]:
    """Serve five events for a minute."""

    async def story() -> tuple[Scene, Sequence[PartitionHandler], ProcessorStatistics]:
        scene, made = Scene(), []
        for number in range(5):
            scene.hub.publish(b"x", partition_id="0", partition_key=f"k{number % 3}")

        def make_one():
            made.append(make(scene))
            return made[-1]

        async with scene.processor(make_one, key_concurrency=lanes, **settings) as processor:
            await seconds(60)
            statistics = processor.statistics()
        return scene, made, statistics

    return run_virtual(story())


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """What was told aloud."""
    loud = [record for record in caplog.records if record.levelno >= logging.WARNING]
    return [(record.levelname, vars(record).get("event", "")) for record in loud]


async def await_what_was_cancelled() -> None:
    """The usual mistake: a task of one's own is cancelled, then awaited."""
    task = asyncio.create_task(asyncio.sleep(100))
    await asyncio.sleep(0)
    task.cancel()
    await task


class Choking(Noting):
    """Cannot handle event 2, in a way that is told to the class."""

    process_events = PartitionHandler.process_events

    def __init__(self, scene: Scene, choke: Callable[[], Any]) -> None:
        super().__init__(scene)
        self.choke = choke

    async def process_event(self, context, event):
        """Choke, or note."""
        if event.sequence_number == 2:
            await self.choke()
        self.scene.handled.append((context.partition_id, event.sequence_number))


class MuteError(Exception):
    """An error that cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


async def raise_mute() -> None:
    """Fail without a word."""
    raise MuteError


class ChokingBatch(Choking):
    """The same for whole batches: nobody is told which event it was."""

    async def process_events(self, context, events):
        """Choke on any, before anything is done."""
        if any(event.sequence_number == 2 for event in events):
            await self.choke()
        for event in events:
            self.scene.handled.append((context.partition_id, event.sequence_number))


@BOTH
@pytest.mark.parametrize("kind", [Choking, ChokingBatch])
@pytest.mark.parametrize("choke", [await_what_was_cancelled, raise_mute])
def test_an_odd_error_is_a_failure_of_its_event(lanes, kind, choke):
    """Also one that looks like a cancellation, or that has no text: the rest is handled once."""
    sink = MemoryDeadLetterSink()
    scene, made, _ = served(
        lambda scene: kind(scene, choke), lanes=lanes, sink=sink, failure_policy=LETTER
    )
    (letter,) = sink.letters

    assert sorted(scene.numbers()) == [0, 1, 3, 4]
    assert (letter.event.sequence_number, letter.attempt_count) == (2, 2)
    assert (scene.checkpointed(), len(made)) == (4, 1)


@BOTH
def test_a_whole_call_that_ends_as_if_cancelled_comes_again(lanes):
    """In place, after a wait, and the handler is told what happened."""
    errors: list[Exception] = []

    class Cancelled(Noting):
        async def process_events(self, context, events):
            if not errors:
                await await_what_was_cancelled()
            await super().process_events(context, events)

        async def process_error(self, context, error):
            errors.append(error)

    scene, made, _ = served(Cancelled, lanes=lanes)

    assert sorted(scene.numbers()) == [0, 1, 2, 3, 4]
    assert {type(error) for error in errors} == {HandlerCancelledError}
    assert len(made) == 1


def test_a_close_that_ends_as_if_cancelled_costs_no_checkpoint():
    """What was handled is stored all the same."""

    class Closing(Noting):
        async def close(self, context, reason):
            await await_what_was_cancelled()

    scene, _, _ = served(Closing, checkpoint_policy=CheckpointPolicy.manual())

    assert scene.checkpointed() == 4


@BOTH
def test_events_cannot_be_taken_out_of_what_the_handler_is_given(lanes):
    """Who empties a batch is told so; nothing else depends on that list."""

    class Emptying(Noting):
        async def process_events(self, context, events):
            events.pop()

    seen: list[Exception] = []

    class Told(Emptying):
        async def process_error(self, context, error):
            seen.append(error)

    scene, made, _ = served(Told, lanes=lanes)

    assert {type(error) for error in seen} == {AttributeError}
    assert scene.checkpointed() is None
    assert len(made) == 1


def test_a_state_that_is_not_bytes_is_refused_at_once():
    """Not later, in the store, where no call of the handler could be blamed."""
    seen: list[str] = []

    class Careless(Noting):
        async def process_events(self, context, events):
            context.state = "17"

        async def process_error(self, context, error):
            seen.append(str(error))

    scene, _, _ = served(Careless)

    assert "is a str: give bytes" in seen[0]
    assert scene.checkpointed() is None


@pytest.mark.parametrize("fails_by", ["raising", "a list"])
def test_an_event_without_a_key_fails_alone(fails_by):
    """The other keys go on, and the policy decides on it."""
    sink = MemoryDeadLetterSink()

    def key_selector(event):
        if event.sequence_number != 2:
            return event.partition_key
        return event.properties["customer"] if fails_by == "raising" else ["nobody"]

    scene, made, _ = served(
        Noting, lanes=3, key_selector=key_selector, sink=sink, failure_policy=LETTER
    )
    (letter,) = sink.letters

    assert sorted(scene.numbers()) == [0, 1, 3, 4]
    assert letter.event.sequence_number == 2
    assert letter.error_type == ("KeyError" if fails_by == "raising" else "TypeError")
    assert (scene.checkpointed(), len(made)) == (4, 1)


def test_an_idle_call_that_fails_each_time_is_told_once(caplog):
    """And once more when it does not fail any more; events are handled meanwhile."""
    caplog.set_level(logging.INFO)
    calls: list[int] = []

    class Restless(Noting):
        async def on_idle(self, context):
            calls.append(1)
            if len(calls) < 10:
                raise ValueError

    scene, _, _ = served(Restless, idle_timeout=timedelta(seconds=1))
    said = [(record.levelname, vars(record).get("event", "")) for record in caplog.records]
    told = [(level, event) for level, event in said if "handler" in event]

    assert scene.numbers() == [0, 1, 2, 3, 4]
    assert told == [("WARNING", "handler_failed"), ("INFO", "handler_recovered")]


def test_an_event_of_another_partition_moves_nothing():
    """To take its number for this partition's would lose all between the two."""
    seen: list[Exception] = []

    class Mixing(Noting):
        async def process_events(self, context, events):
            stranger = replace(events[0], sequence_number=1000)
            for say in (context.done, context.checkpoint):
                try:
                    outcome = say(stranger)
                    if outcome is not None:
                        await outcome
                except ValueError as error:
                    seen.append(error)
            await super().process_events(context, events)

    scene, _, _ = served(Mixing)

    assert "event 1000 was not handed" in str(seen[0])
    assert len(seen) == 2
    assert scene.checkpointed() == 4


def test_in_lanes_nobody_moves_the_whole_position():
    """Neither at the end, nor for a call that is over: what lies below may be under way."""
    contexts: list[Any] = []
    seen: list[Any] = []

    class Late(Noting):
        async def process_events(self, context, events):
            contexts.append(context)
            seen.extend(events)
            await asyncio.Event().wait()

        async def close(self, context, reason):
            for known in (*contexts, context):
                known.done(seen[-1])
                await known.checkpoint(seen[-1])

    scene, _, _ = served(Late, lanes=3, shutdown_timeout=timedelta(seconds=5))

    assert seen[-1].sequence_number == 2
    assert scene.checkpointed() is None


def test_in_lanes_an_event_of_another_call_says_nothing_of_this_one():
    """Its lane has another key by then, of which lower events are not handled."""
    contexts: list[Any] = []
    seen: list[Any] = []

    class Belated(Noting):
        async def process_events(self, context, events):
            seen.extend(events)
            contexts.append(context)
            if events[0].partition_key == "k1":
                for known in contexts:
                    known.done(replace(seen[0], sequence_number=2))
                await asyncio.Event().wait()
            await super().process_events(context, events)

    async def story():
        scene = Scene()
        async with scene.processor(
            lambda: Belated(scene), key_concurrency=2, shutdown_timeout=timedelta(seconds=5)
        ):
            scene.hub.publish(b"x", partition_id="0", partition_key="k0")
            await seconds(5)
            for key in ("k1", "k0"):
                scene.hub.publish(b"x", partition_id="0", partition_key=key)
            await seconds(30)
        return scene

    scene = run_virtual(story())
    checkpoint = scene.checkpoint()

    assert checkpoint is not None
    assert checkpoint.sequence_number == 0
    assert not any(done.first <= 1 <= done.last for done in checkpoint.completed)


def test_a_thread_that_raises_stop_iteration_is_heard():
    """No future takes that error; the call must not hang over it."""
    handled: list[int] = []

    class Running(BlockingPartitionHandler):
        count = 0

        def process_events(self, context, events):
            Running.count += 1
            if Running.count == 1:
                next(iter(()))
            handled.extend(event.sequence_number for event in events)

    async def story():
        scene = Scene()
        scene.publish(3)
        async with scene.processor(Running, **SHORT):
            await until(lambda: len(handled) == 3)

    asyncio.run(story())

    assert handled == [0, 1, 2]
