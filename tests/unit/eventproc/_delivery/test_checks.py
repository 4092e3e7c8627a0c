"""Handlers that can never work are refused at the start with the remedy; others are accepted."""

import asyncio
import sys
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    BlockingPartitionHandler,
    ConfigurationError,
    EventProcessor,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    PartitionHandler,
)
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.decoders import JsonDecoder
from eventproc.errors import MissingExtraError
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing import HandlerTestHarness, run_virtual


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


class Good(PartitionHandler):
    async def process_event(self, context, event):
        pass


class Decoding(PartitionHandler):
    decode = JsonDecoder(dict)

    async def process_value(self, context, value, event):
        pass


LETTER = FailurePolicy(action=FailureAction.DEAD_LETTER)

BAD: list[tuple[type, str]] = [
    (
        Needy,
        r"Needy cannot be made without arguments \(missing .*'database'\): .* return Needy\(",
    ),
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


def processor(handler, sink=None, **settings):
    """A processor of a hub with one event."""
    hub = MemoryHub(1)
    hub.publish(b"x")
    return EventProcessor(
        source=MemoryEventSource(hub),
        store=MemoryCheckpointStore(),
        handler=handler,
        dead_letters=sink,
        config=EventProcessorConfig(uses_store_thread=False, **settings),
    )


def test_a_policy_that_never_stores_a_dead_letter_is_refused():
    """Else an operator would look for letters in vain."""
    words = r"DEAD_LETTER, and no event would ever be given up, .* set attempts_max or deliver"
    with pytest.raises(ConfigurationError, match=words):
        processor(Good, MemoryDeadLetterSink(), failure_policy=LETTER)


@pytest.mark.parametrize(
    ("handler", "policy"),
    [
        (Good, FailurePolicy(attempts_max=1, action=FailureAction.DEAD_LETTER)),
        (Good, FailurePolicy(deliveries_max=3, action=FailureAction.DEAD_LETTER)),
        (Decoding, LETTER),
        (lambda: Good(), LETTER),  # noqa: PLW0108 - what a function returns is not known yet
    ],
)
def test_a_policy_that_may_store_a_dead_letter_is_accepted(handler, policy):
    """A body that cannot be decoded is given up without any limit."""
    processor(handler, MemoryDeadLetterSink(), failure_policy=policy)


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


class Static(BlockingPartitionHandler):
    @staticmethod
    def process_event(context, event):
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


async def test_the_handler_that_was_checked_is_used():
    """The function is not called for the check alone."""
    made = []

    def make():
        made.append(Decorated())
        return made[-1]

    async with processor(make):
        await asyncio.sleep(1)

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


class ColumnsInThread(BlockingPartitionHandler):
    async def process_columns(self, context, columns):  # type: ignore[override]
        pass


class PlainColumns(PartitionHandler):
    def process_columns(self, context, columns):
        pass


class UnknownColumn(PartitionHandler):
    columns: Any = ("body", "time")

    async def process_columns(self, context, columns):
        pass


class OneColumn(UnknownColumn):
    columns = "body"


class NoColumn(UnknownColumn):
    columns = ()


class ColumnsOfEvents(PartitionHandler):
    columns = ("body",)

    async def process_event(self, context, event):
        pass


BAD_COLUMNS: list[tuple[type, str]] = [
    (ColumnsInThread, r"ColumnsInThread.process_columns is `async def`"),
    (PlainColumns, r"PlainColumns.process_columns is `def`"),
    (UnknownColumn, r"UnknownColumn.columns: there is no column 'time': choose of body, partition"),
    (OneColumn, r"OneColumn.columns is 'body': give the names of columns, such as \(\"body\""),
    (NoColumn, r"NoColumn.columns is \(\): give the names"),
    (ColumnsOfEvents, r"ColumnsOfEvents.columns has no effect, because .* no process_columns"),
]


@pytest.mark.parametrize(
    ("handler", "message"), BAD_COLUMNS, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_handler_of_columns_that_can_never_work_is_refused(handler, message):
    """When a processor is built."""
    with pytest.raises(ConfigurationError, match=message):
        processor(handler)


class Both(PartitionHandler):
    async def process_events(self, context, events):
        pass

    async def process_columns(self, context, columns):
        pass


class Columns(PartitionHandler):
    async def process_columns(self, context, columns):
        pass


def test_columns_are_refused_with_key_lanes():
    """A batch has events of many keys. A handler of events may define them too, for Spark."""
    processor(Columns)
    with pytest.raises(ConfigurationError, match="key_concurrency is 4: Columns takes columns"):
        processor(Columns, key_concurrency=4)
    processor(Both, key_concurrency=4)


def test_without_the_extra_a_handler_of_columns_is_refused_with_the_command(monkeypatch):
    """Before anything is claimed."""
    for name in [name for name in sys.modules if name.startswith("eventproc.columns")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'eventproc\[columns\]'"):
        processor(Columns)
    processor(Both)
