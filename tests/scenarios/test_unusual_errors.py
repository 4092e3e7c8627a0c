"""User code that raises unusual errors or breaks rules: the effect stays with its own event."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from eventproc import (
    BlockingPartitionHandler,
    CheckpointPolicy,
    HandlerCancelledError,
    PartitionHandler,
)
from eventproc.dead_letters import MemoryDeadLetterSink
from tests.scenarios.five_events import BOTH, LETTER, served
from tests.scenarios.group_setup import Noting, Setup, seconds, until
from tests.unit.eventproc._delivery.test_handler_threads import SHORT


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Level and name of each logged event from WARNING on."""
    loud = [record for record in caplog.records if record.levelno >= logging.WARNING]
    return [(record.levelname, vars(record).get("event", "")) for record in loud]


async def await_a_cancelled_task() -> None:
    """Cancel a task of one's own, and await it: a common mistake."""
    task = asyncio.create_task(asyncio.sleep(100))
    await asyncio.sleep(0)
    task.cancel()
    await task


class FailingAtOne(Noting):
    """Raises for event 2, in the way that the class is given."""

    process_events = PartitionHandler.process_events

    def __init__(self, setup: Setup, failing: Callable[[], Any]) -> None:
        super().__init__(setup)
        self.failing = failing

    async def process_event(self, context, event):
        """Raise or record."""
        if event.sequence_number == 2:
            await self.failing()
        self.setup.handled.append((context.partition_id, event.sequence_number))


class UnprintableError(Exception):
    """An error that cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


async def raise_unprintable() -> None:
    """Raise an error that cannot be printed."""
    raise UnprintableError


class FailingAtOneInBatch(FailingAtOne):
    """Raises for whole batches, and does not say which event failed."""

    async def process_events(self, context, events):
        """Raise for a batch with event 2, before anything is done."""
        if any(event.sequence_number == 2 for event in events):
            await self.failing()
        for event in events:
            self.setup.handled.append((context.partition_id, event.sequence_number))


@BOTH
@pytest.mark.parametrize("kind", [FailingAtOne, FailingAtOneInBatch])
@pytest.mark.parametrize("failing", [await_a_cancelled_task, raise_unprintable])
def test_any_error_is_a_failure_of_its_event_alone(lanes, kind, failing):
    """Also a cancellation or an error without text. Other events are handled once."""
    sink = MemoryDeadLetterSink()
    setup, made, _ = served(
        lambda setup: kind(setup, failing), lanes=lanes, sink=sink, failure_policy=LETTER
    )
    (letter,) = sink.letters

    assert sorted(setup.numbers()) == [0, 1, 3, 4]
    assert (letter.event.sequence_number, letter.attempt_count) == (2, 2)
    assert (setup.checkpointed(), len(made)) == (4, 1)


@BOTH
def test_a_call_that_raises_cancelled_error_is_retried(lanes):
    """After a wait, and ``process_error`` gets ``HandlerCancelledError``."""
    errors: list[Exception] = []

    class Cancelled(Noting):
        async def process_events(self, context, events):
            if not errors:
                await await_a_cancelled_task()
            await super().process_events(context, events)

        async def process_error(self, context, error):
            errors.append(error)

    setup, made, _ = served(Cancelled, lanes=lanes)

    assert sorted(setup.numbers()) == [0, 1, 2, 3, 4]
    assert {type(error) for error in errors} == {HandlerCancelledError}
    assert len(made) == 1


def test_a_close_that_raises_cancelled_error_does_not_prevent_the_checkpoint():
    """Handled events are stored."""

    class Closing(Noting):
        async def close(self, context, reason):
            await await_a_cancelled_task()

    setup, _, _ = served(Closing, checkpoint_policy=CheckpointPolicy.manual())

    assert setup.checkpointed() == 4


@BOTH
def test_a_handler_cannot_change_the_batch_that_it_gets(lanes):
    """Emptying it raises, and nothing else depends on that list."""

    class Emptying(Noting):
        async def process_events(self, context, events):
            events.pop()

    seen: list[Exception] = []

    class RecordingErrors(Emptying):
        async def process_error(self, context, error):
            seen.append(error)

    setup, made, _ = served(RecordingErrors, lanes=lanes)

    assert {type(error) for error in seen} == {AttributeError}
    assert setup.checkpointed() is None
    assert len(made) == 1


def test_setting_state_that_is_not_bytes_raises_at_once():
    """In the handler's call, and not later in the store."""
    seen: list[str] = []

    class Careless(Noting):
        async def process_events(self, context, events):
            context.state = "17"

        async def process_error(self, context, error):
            seen.append(str(error))

    setup, _, _ = served(Careless)

    assert "is a str: give bytes" in seen[0]
    assert setup.checkpointed() is None


@pytest.mark.parametrize("fails_by", ["raising", "a list"])
def test_an_event_whose_key_selector_fails_is_given_up_alone(fails_by):
    """By the failure policy; the other keys go on."""
    sink = MemoryDeadLetterSink()

    def key_selector(event):
        if event.sequence_number != 2:
            return event.partition_key
        return event.properties["customer"] if fails_by == "raising" else ["no text"]

    setup, made, _ = served(
        Noting, lanes=3, key_selector=key_selector, sink=sink, failure_policy=LETTER
    )
    (letter,) = sink.letters

    assert sorted(setup.numbers()) == [0, 1, 3, 4]
    assert letter.event.sequence_number == 2
    assert letter.error_type == ("KeyError" if fails_by == "raising" else "TypeError")
    assert (setup.checkpointed(), len(made)) == (4, 1)


def test_failures_of_on_idle_are_logged_when_they_begin_and_end(caplog):
    """Events are handled meanwhile."""
    caplog.set_level(logging.INFO)
    calls: list[int] = []

    class Restless(Noting):
        async def on_idle(self, context):
            calls.append(1)
            if len(calls) < 10:
                raise ValueError

    setup, _, _ = served(Restless, idle_timeout=timedelta(seconds=1))
    events = [(record.levelname, vars(record).get("event", "")) for record in caplog.records]
    handler_events = [(level, event) for level, event in events if "handler" in event]

    assert setup.numbers() == [0, 1, 2, 3, 4]
    assert handler_events == [("WARNING", "handler_failed"), ("INFO", "handler_recovered")]


def test_done_and_checkpoint_refuse_an_event_that_was_not_delivered():
    """Its number would skip all events between the two positions."""
    seen: list[Exception] = []

    class Mixing(Noting):
        async def process_events(self, context, events):
            undelivered = replace(events[0], sequence_number=1000)
            for report in (context.done, context.checkpoint):
                try:
                    outcome = report(undelivered)
                    if outcome is not None:
                        await outcome
                except ValueError as error:
                    seen.append(error)
            await super().process_events(context, events)

    setup, _, _ = served(Mixing)

    assert "event 1000 was not handed" in str(seen[0])
    assert len(seen) == 2
    assert setup.checkpointed() == 4


def test_in_lanes_events_reported_done_in_close_do_not_move_the_position():
    """Lower events may still be under way in other lanes."""
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

    setup, _, _ = served(Late, lanes=3, shutdown_timeout=timedelta(seconds=5))

    assert seen[-1].sequence_number == 2
    assert setup.checkpointed() is None


async def test_in_lanes_done_ignores_an_event_of_another_call():
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

    setup = Setup()
    async with setup.processor(
        lambda: Belated(setup), key_concurrency=2, shutdown_timeout=timedelta(seconds=5)
    ):
        setup.hub.publish(b"x", partition_id="0", partition_key="k0")
        await seconds(5)
        for key in ("k1", "k0"):
            setup.hub.publish(b"x", partition_id="0", partition_key=key)
        await seconds(30)

    checkpoint = setup.checkpoint()

    assert checkpoint is not None
    assert checkpoint.sequence_number == 0
    assert not any(done.first <= 1 <= done.last for done in checkpoint.completed)


@pytest.mark.real_time
async def test_stop_iteration_raised_in_a_handler_thread_is_a_failure():
    """No future accepts that error, but the call must not hang."""
    handled: list[int] = []

    class Running(BlockingPartitionHandler):
        count = 0

        def process_events(self, context, events):
            Running.count += 1
            if Running.count == 1:
                next(iter(()))
            handled.extend(event.sequence_number for event in events)

    setup = Setup()
    setup.publish(3)
    async with setup.processor(Running, **SHORT):
        await until(lambda: len(handled) == 3)

    assert handled == [0, 1, 2]
