"""Handlers that can never work are refused at the start with the remedy; others are accepted."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    BlockingPartitionHandler,
    ConfigurationError,
    EventProcessor,
    EventProcessorConfig,
    PartitionHandler,
)
from eventproc.cli import main
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.state import TypedState
from eventproc.testing import HandlerTestHarness, run_virtual


@dataclass
class Total:
    """What a handler counts."""

    count: int = 0


TOTALS = TypedState(Total)


class Needy(PartitionHandler):
    def __init__(self, database):
        self.database = database

    async def process_event(self, context, event):
        pass


class Plain(PartitionHandler):
    def process_event(self, context, event):
        pass


class PlainClose(PartitionHandler):
    async def process_event(self, context, event):
        pass

    def close(self, context, reason):
        pass


class Yielding(PartitionHandler):
    async def process_events(self, context, events):
        for event in events:
            yield event


class Awaited(BlockingPartitionHandler):
    async def process_event(self, context, event):  # type: ignore[override]
        pass


class YieldingInThread(BlockingPartitionHandler):
    def process_events(self, context, events):
        yield from events


class Empty(PartitionHandler):
    async def initialize(self, context):
        pass


class EmptyInThread(BlockingPartitionHandler):
    pass


class Mistyped(PartitionHandler):
    async def process_evnets(self, context, events):
        pass


class WithoutContext(PartitionHandler):
    async def process_event(self, event):  # type: ignore[override]
        pass


class WithMore(PartitionHandler):
    async def process_events(self, context, events, database):  # type: ignore[override]
        pass


class OfNoHandlerClass:
    async def process_event(self, context, event):
        pass


BAD: list[tuple[type, str]] = [
    (Needy, r"Needy cannot be made without arguments \(missing .*'database'\): .* lambda: Needy"),
    (Plain, r"Plain.process_event is `def`, .* write `async def`, or inherit from Blocking"),
    (PlainClose, r"PlainClose.close is `def`"),
    (Yielding, r"Yielding.process_events contains a yield, so calling it does nothing: remove"),
    (Awaited, r"Awaited.process_event is `async def`, .* write `def`, or inherit from Partition"),
    (YieldingInThread, r"YieldingInThread.process_events contains a yield"),
    (
        Empty,
        r"Empty handles nothing: define process_event or process_value or process_events",
    ),
    (EmptyInThread, r"EmptyInThread handles nothing"),
    (Mistyped, r"Mistyped handles nothing"),
    (WithoutContext, r"WithoutContext.process_event cannot be called with \(context, event\)"),
    (WithMore, r"WithMore.process_events cannot be called with \(context, events\)"),
    (
        OfNoHandlerClass,
        r"OfNoHandlerClass is not a handler: let it inherit from PartitionHandler or",
    ),
    (PartitionHandler, r"PartitionHandler handles nothing"),
]


def processor(handler, **settings):
    """A processor of a hub with one event."""
    hub = MemoryHub(1)
    hub.publish(b"x")
    return EventProcessor(
        source=MemoryEventSource(hub),
        store=MemoryCheckpointStore(),
        handler=handler,
        config=EventProcessorConfig(uses_store_thread=False, **settings),
    )


@pytest.mark.parametrize(
    ("handler", "message"), BAD, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_handler_that_can_never_work_is_refused(handler, message):
    """When a processor or a test harness is built."""
    with pytest.raises(ConfigurationError, match=message):
        processor(handler)
    with pytest.raises(ConfigurationError, match=message):
        HandlerTestHarness(handler)


@pytest.mark.parametrize(("handler", "message"), BAD[1:], ids=lambda v: getattr(v, "__name__", ""))
def test_a_handler_made_by_a_function_is_checked_when_the_processor_starts(handler, message):
    """Its class is not known before. Nothing is claimed yet."""
    subject = processor(lambda *_: handler())

    async def scenario():
        await subject.start()

    with pytest.raises(ConfigurationError, match=message):
        run_virtual(scenario())
    assert subject.statistics().owned == ()


def test_a_partial_is_checked_by_its_class():
    """So arguments may be given with ``functools.partial``."""
    with pytest.raises(ConfigurationError, match="handles nothing"):
        processor(partial(Empty))
    with pytest.raises(ConfigurationError, match="Needy cannot be made"):
        processor(partial(partial(Needy)))


class Direct(PartitionHandler):
    async def process_events(self, context, events):
        context.state = b"%d" % len(events)


class InThread(BlockingPartitionHandler):
    def process_event(self, context, event):
        context.state = event.body


class Typed(PartitionHandler):
    async def process_event(self, context, event):
        with TOTALS.edit(context) as total:
            total.count += 1


class OwnTyped(PartitionHandler):
    totals = TypedState(Total)

    async def process_event(self, context, event):
        self.totals.save(context, Total(1))


class Initializing(PartitionHandler):
    async def initialize(self, context):
        context.state = b"begun"

    async def process_event(self, context, event):
        pass


class Counting(PartitionHandler):
    async def process_events(self, context, events):
        count = int(context.state or 0)
        if not events:
            raise ValueError
        async with asyncio.timeout(1):
            await asyncio.sleep(0)
            for _ in [each for each in events if each]:
                count += 1
                context.state = b"%d" % count


@pytest.mark.parametrize("handler", [Direct, InThread, Typed, OwnTyped, Initializing, Counting])
def test_a_handler_that_sets_state_is_refused_with_key_lanes(handler):
    """With key lanes, state belongs to no position. Without them it is accepted."""
    with pytest.raises(
        ConfigurationError, match=r"sets the state, and key_concurrency is 4: .* to 1"
    ):
        processor(handler, key_concurrency=4)
    assert processor(handler)


def forwarding(function: Callable) -> Callable:
    """A decorator like many others."""

    @wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


class Decorated(PartitionHandler):
    @forwarding
    async def process_event(self, context, event):
        pass


class InheritedMethod(Decorated):
    pass


class Generous(PartitionHandler):
    async def process_events(self, *args, log=None):
        pass


class ReadsState(PartitionHandler):
    """Sets an attribute called state, and reads what was stored without lanes."""

    async def process_event(self, context, event):
        self.state = context.state
        self.total = TOTALS.load(context)


class Conditional(PartitionHandler):
    """Sets the state only if an attribute says so."""

    keeps_state = False

    async def process_event(self, context, event):
        if self.keeps_state:
            context.state = event.body


class Alternative(Conditional):
    async def process_event(self, context, event):
        if not self.keeps_state:
            await asyncio.sleep(0)
        else:
            context.state = event.body


class Returning(Conditional):
    async def process_event(self, context, event):
        if not self.keeps_state:
            return
        with TOTALS.edit(context) as total:
            total.count += 1


class Reacting(Conditional):
    async def process_event(self, context, event):
        try:
            self.count = 1
        except ValueError:
            context.state = event.body


class Static(BlockingPartitionHandler):
    @staticmethod
    def process_event(context, event):
        pass


class Batching(PartitionHandler):
    async def process_event(self, context, event):
        context.state = event.body

    async def process_events(self, context, events):
        pass


class WithDefault(PartitionHandler):
    def __init__(self, database=None):
        self.database = database

    async def process_event(self, context, event):
        pass


@pytest.mark.parametrize(
    "handler",
    [
        Decorated,
        InheritedMethod,
        Generous,
        ReadsState,
        Conditional,
        Alternative,
        Returning,
        Reacting,
        Batching,
        WithDefault,
        partial(Needy, "database"),
        lambda: Needy("database"),
    ],
)
def test_handlers_that_may_work_are_accepted(handler):
    """Decorators, subclasses, odd parameters, constructor arguments; with key lanes, too."""

    async def scenario():
        async with processor(handler, key_concurrency=2) as subject:
            await asyncio.sleep(1)
            return subject.statistics().counters

    counters = run_virtual(scenario())

    assert (counters.handled_count, counters.handler_error_count) == (1, 0)


def test_a_static_method_is_accepted():
    """It is called with two arguments all the same."""
    assert processor(Static)


def test_the_handler_that_was_checked_is_used():
    """The function is not called for the check alone."""
    made = []

    def make():
        made.append(Decorated())
        return made[-1]

    async def scenario():
        async with processor(make):
            await asyncio.sleep(1)

    run_virtual(scenario())

    assert len(made) == 1


def test_a_handler_function_that_raises_is_called_again():
    """A database may be away at the start, which is no reason to refuse the handler."""
    failures = [OSError("away")]

    def make():
        if failures:
            raise failures.pop()
        return Decorated()

    async def scenario():
        async with processor(make) as subject:
            await asyncio.sleep(5)
            return subject.statistics().counters.handled_count

    assert run_virtual(scenario()) == 1


def test_the_command_exits_with_code_2_for_a_handler_that_can_never_work(
    tmp_path, monkeypatch, capsys
):
    """So a supervisor does not start it again."""
    (tmp_path / "my_handlers.py").write_text(
        "from eventproc import PartitionHandler\n"
        "class Plain(PartitionHandler):\n    def process_event(self, context, event): pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    connection = "Endpoint=sb://localhost;SharedAccessKeyName=a;SharedAccessKey=b;EntityPath=h"
    store = f"sqlite:{tmp_path / 'group.db'}"
    code = main(["run", "my_handlers:Plain", "--store", store, "--connection-string", connection])

    assert code == 2
    assert "Plain.process_event is `def`" in capsys.readouterr().err
