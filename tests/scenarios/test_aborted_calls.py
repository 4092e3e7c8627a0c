"""User code that raises what is no ``Exception``, or ends its own task: its own call has failed."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from eventproc import (
    BlockingPartitionHandler,
    CheckpointPolicy,
    HandlerAbortedError,
    HandlerCancelledError,
    PartitionHandler,
    ResourceHandler,
)
from eventproc.dead_letters import FunctionDeadLetterSink, MemoryDeadLetterSink
from tests.scenarios.five_events import BOTH, LETTER, served
from tests.scenarios.group_setup import Noting, Setup, seconds, until
from tests.scenarios.resource_setup import ResourceSetup
from tests.unit.eventproc._delivery.test_handler_threads import SHORT


class Panic(BaseException):
    """As an extension module raises it."""


async def panic() -> None:
    """Raise what a Rust module raises."""
    raise Panic("index out of bounds")


async def exit_well() -> None:
    """End the process, as the code thinks."""
    sys.exit(0)


async def exit_generator() -> None:
    """Raise what closes a coroutine."""
    raise GeneratorExit


async def cancel_oneself() -> None:
    """Cancel the task that this code runs in."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)


ABORTS = [
    (panic, HandlerAbortedError),
    (exit_well, HandlerAbortedError),
    (exit_generator, HandlerAbortedError),
    (cancel_oneself, HandlerCancelledError),
]
EACH = pytest.mark.parametrize(("abort", "error"), ABORTS, ids=[a.__name__ for a, _ in ABORTS])


class Aborting(Noting):
    """Aborts at event 2, or in the methods that are named."""

    process_events = PartitionHandler.process_events

    def __init__(self, setup: Setup, abort: Callable[[], Any], *methods: str) -> None:
        super().__init__(setup)
        self.abort = abort
        self.methods = methods
        self.called: list[str] = []
        self.errors: list[Exception] = []

    async def _do(self, method: str) -> None:
        self.called.append(method)
        if method in self.methods and self.called.count(method) < 3:
            await self.abort()

    async def initialize(self, context):
        """Abort twice, if asked to."""
        await self._do("initialize")

    async def process_event(self, context, event):
        """Abort or record."""
        if not self.methods and event.sequence_number == 2:
            await self.abort()
        if event.sequence_number == 2:
            await self._do("process_event")
        self.setup.handled.append((context.partition_id, event.sequence_number))

    async def on_idle(self, context):
        """Abort twice, if asked to."""
        await self._do("on_idle")

    async def process_error(self, context, error):
        """Note the error."""
        self.errors.append(error)
        await self._do("process_error")

    async def close(self, context, reason):
        """Abort, if asked to."""
        await self._do("close")


def logged(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    """The fields of each log event of a name."""
    return [vars(record) for record in caplog.records if vars(record).get("event") == event]


@BOTH
@EACH
def test_an_abort_is_a_failure_of_its_event_alone(lanes, abort, error, caplog):
    """Its number is in the log, the failure policy applies, and the pump goes on."""
    sink = MemoryDeadLetterSink()
    setup, made, _ = served(
        lambda setup: Aborting(setup, abort), lanes=lanes, sink=sink, failure_policy=LETTER
    )
    (letter,) = sink.letters
    (failure,) = logged(caplog, "handler_failed")

    assert sorted(setup.numbers()) == [0, 1, 3, 4]
    assert (letter.event.sequence_number, letter.attempt_count) == (2, 2)
    assert letter.error_type == f"eventproc.errors.{error.__name__}"
    assert failure["sequence_number"] == 2
    assert (setup.checkpointed(), len(made)) == (4, 1)


def test_the_letter_of_a_panic_has_its_text_and_traceback():
    """Otherwise nobody finds the cause."""
    sink = MemoryDeadLetterSink()
    served(lambda setup: Aborting(setup, panic), sink=sink, failure_policy=LETTER)
    (letter,) = sink.letters

    assert (
        "Panic('index out of bounds') was raised, which is not an Exception" in letter.error_message
    )
    assert 'raise Panic("index out of bounds")' in letter.traceback


@EACH
@pytest.mark.parametrize("method", ["initialize", "on_idle", "process_error", "close"])
def test_an_abort_in_another_method_is_logged_and_every_event_handled(abort, error, method, caplog):
    """The handler is not made again, and its progress is stored."""

    def make(setup: Setup) -> Aborting:
        return Aborting(setup, abort, method, *(["process_event"] * (method == "process_error")))

    setup, made, _ = served(
        make,
        idle_timeout=timedelta(seconds=1),
        checkpoint_policy=CheckpointPolicy.manual(),
    )
    event = "error_handler_failed" if method == "process_error" else "handler_failed"

    assert setup.numbers() == [0, 1, 2, 3, 4]
    assert any(error.__name__ in failure["error"] for failure in logged(caplog, event))
    assert (setup.checkpointed(), len(made)) == (4, 1)


@pytest.mark.parametrize("raised", [Panic, SystemExit])
def test_an_abort_in_the_factory_is_logged_and_tried_again_after_a_wait(raised, caplog):
    """No handler is made thirty times a second."""
    attempts: list[int] = []

    def make(setup: Setup) -> Noting:
        attempts.append(1)
        if len(attempts) < 4:
            raise raised
        return Noting(setup)

    setup, _, _ = served(make)

    assert sorted(setup.numbers()) == [0, 1, 2, 3, 4]
    assert len(logged(caplog, "pump_failed")) in {2, 3}  # The first may be a check at the start.


@pytest.mark.parametrize("raised", [Panic, SystemExit])
def test_an_abort_in_the_key_selector_is_a_failure_of_its_event(raised):
    """The other keys go on."""
    sink = MemoryDeadLetterSink()

    def key_selector(event):
        if event.sequence_number == 2:
            raise raised
        return event.partition_key

    setup, made, _ = served(
        Noting, lanes=3, key_selector=key_selector, sink=sink, failure_policy=LETTER
    )
    (letter,) = sink.letters

    assert sorted(setup.numbers()) == [0, 1, 3, 4]
    assert letter.event.sequence_number == 2
    assert letter.error_type == "eventproc.errors.HandlerAbortedError"
    assert len(made) == 1


@EACH
def test_a_sink_that_aborts_has_not_stored_the_letter(abort, error, caplog):
    """It is asked again after a wait."""
    letters: list[Any] = []
    calls: list[int] = []

    async def store(letter):
        calls.append(1)
        if len(calls) < 3:
            await abort()
        letters.append(letter)

    async def fail() -> None:
        raise ValueError

    setup, made, _ = served(
        lambda setup: Aborting(setup, fail),
        sink=FunctionDeadLetterSink(store),
        failure_policy=LETTER,
    )

    assert [letter.event.sequence_number for letter in letters] == [2]
    assert error.__name__ in logged(caplog, "dead_letter_failed")[0]["error"]
    assert (setup.checkpointed(), len(made)) == (4, 1)


@pytest.mark.parametrize("raised", [Panic, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.real_time
async def test_an_abort_in_a_handler_thread_is_a_failure_of_its_event(raised, lanes):
    """Also an interrupt: the user's reaches the main thread only."""
    handled: list[int] = []
    sink = MemoryDeadLetterSink()

    class Raising(BlockingPartitionHandler):
        def process_event(self, context, event):
            if event.sequence_number == 1:
                raise raised
            handled.append(event.sequence_number)

    setup = Setup()
    setup.publish(3)
    async with setup.processor(
        Raising, sink=sink, failure_policy=LETTER, key_concurrency=lanes, **SHORT
    ):
        await until(lambda: len(handled) == 2 and sink.letters)

    assert handled == [0, 2]
    assert sink.letters[0].event.sequence_number == 1


class Swallowing(PartitionHandler):
    """Ignores its cancellation, and returns as if its event were handled."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    async def process_event(self, context, event):
        """Handle the first event only."""
        if event.sequence_number == 0:
            return
        try:
            await asyncio.sleep(10_000)
        except asyncio.CancelledError:
            self.setup.handled.append((context.partition_id, event.sequence_number))


class SwallowingBatches(Swallowing):
    """The same with a whole batch."""

    async def process_events(self, context, events):
        """Handle the first event only."""
        for event in events:
            await self.process_event(context, event)
            if event.sequence_number != 0:
                return
            context.done(event)


@BOTH
@pytest.mark.parametrize("handler", [Swallowing, SwallowingBatches])
@pytest.mark.parametrize("count", [2, 5])
async def test_an_event_whose_call_ignores_its_cancellation_is_delivered_again(
    lanes, count, handler, caplog
):
    """Half of its work may be missing. The log names it, and no pump has failed."""
    setup = Setup()
    setup.publish(count)
    processor = setup.processor(lambda: handler(setup), key_concurrency=lanes)
    await processor.start()
    await seconds(5)
    await processor.stop()

    (cancelled,) = logged(caplog, "handler_cancelled")

    assert (
        setup.numbers(),
        setup.checkpointed(),
        processor.statistics().counters.handled_count,
    ) == ([1], 0, 1)
    assert cancelled["sequence_number"] == 1
    assert logged(caplog, "pump_failed") == []


def test_context_variables_that_a_handler_sets_are_kept_for_its_next_calls():
    """As those of a logger, which ``initialize`` binds: each call has a task of its own."""
    tenant: ContextVar[str] = ContextVar("tenant")
    seen: list[str] = []

    class Binding(Noting):
        async def initialize(self, context):
            tenant.set(context.partition_id)

        async def process_events(self, context, events):
            seen.append(tenant.get())
            await super().process_events(context, events)

        async def close(self, context, reason):
            seen.append(tenant.get())

    served(Binding)

    assert set(seen) == {"0"}
    assert len(seen) >= 2


@EACH
@pytest.mark.parametrize("method", ["hold", "drain"])
async def test_an_abort_in_a_resource_handler_is_a_failure_of_its_call(
    abort, error, method, caplog
):
    """``hold`` is called again after a wait; ``drain`` is over."""
    setup_held: list[str] = []

    class Holding(ResourceHandler):
        async def hold(self, held):
            setup_held.append(held.name)
            if method == "hold" and len(setup_held) < 3:
                await abort()
            await asyncio.Event().wait()

        async def drain(self, held):
            if method == "drain":
                await abort()

    setup = ResourceSetup("a")
    async with setup.processor("p", Holding):
        await seconds(60)

    failures = logged(caplog, f"{method}_failed")

    assert len(setup_held) == (3 if method == "hold" else 1)
    assert failures
    assert error.__name__ in failures[0]["error"]


@BOTH
def test_a_call_that_cancels_its_task_and_catches_that_has_handled_its_event(lanes):
    """As time-outs of older libraries do, which never take the cancellation back."""

    class TimingOut(Noting):
        async def process_events(self, context, events):
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_later(1, task.cancel)
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                await super().process_events(context, events)

    setup, made, _ = served(TimingOut, lanes=lanes)

    assert sorted(setup.numbers()) == [0, 1, 2, 3, 4]
    assert (setup.checkpointed(), len(made)) == (4, 1)


@BOTH
def test_a_cancellation_that_comes_when_the_call_has_returned_is_no_failure_of_a_later_event(lanes):
    """As that of a time-out that the handler did not end: the later event is not given up."""

    class TimingOutLate(Noting):
        async def process_events(self, context, events):
            task = asyncio.current_task()
            assert task is not None
            if events[0].sequence_number == 0:
                asyncio.get_running_loop().call_later(0.5, task.cancel)
            else:
                await asyncio.sleep(1)
            await super().process_events(context, events)

    sink = MemoryDeadLetterSink()
    policy = replace(LETTER, attempts_max=1)
    setup, made, _ = served(
        TimingOutLate,
        lanes=lanes,
        sink=sink,
        failure_policy=policy,
        key_selector=lambda event: event.sequence_number,
    )

    assert (sorted(setup.numbers()), sink.letters, len(made)) == ([0, 1, 2, 3, 4], [], 1)


INTERRUPTED = """
import asyncio, signal
from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, PartitionHandler
from eventproc.sources.memory import MemoryEventSource, MemoryHub

hub = MemoryHub(partition_count=1)
hub.publish(b"")

class Interrupted(PartitionHandler):
    calls = 0

    async def process_event(self, context, event):
        self.calls += 1
        if self.calls == 1:
            signal.raise_signal(signal.SIGINT)

processor = EventProcessor(
    source=MemoryEventSource(hub), store=MemoryCheckpointStore(), handler=Interrupted
)
loop = asyncio.new_event_loop()
serving = loop.create_task(processor.serve())
try:
    loop.run_until_complete(serving)
except KeyboardInterrupt:
    print("interrupted")
serving.cancel()
loop.run_until_complete(asyncio.wait([serving]))
print("stopped")
"""


def test_an_interrupt_of_the_user_during_a_call_ends_the_program():
    """By the first signal; the program may still stop the processor in order."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stdout.split() == ["interrupted", "stopped"], done.stderr
    assert "never retrieved" not in done.stderr
