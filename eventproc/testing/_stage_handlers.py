"""The user's handlers as a stage has them: every call noted, some made to fail, none after death.

The methods are wrapped on each instance, not in a class around it, so that whatever else a handler
is or has stays visible to those who serve it.
"""

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Final, cast

from eventproc.blocking import HandlerThread, ThreadContext, ThreadedHandler
from eventproc.handler import (
    BlockingPartitionHandler,
    HandlerFactory,
    PartitionContext,
    PartitionHandler,
)
from eventproc.models import CloseReason, ReceivedEvent
from eventproc.testing._stage_record import Record

_WATCH: Final = "_eventproc_watch"
"""The attribute by which a handler's watch is known."""

_METHODS: Final = ("initialize", "process_events", "process_idle", "process_error", "close")

Holds = Counter[str]
"""Calls under way in threads, for each owner: while there are any, the clock stands still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """What is to happen to one call."""

    error: Exception | None
    """``None``: the owner dies when the work is done, before anybody learns of it."""

    is_after_work: bool


@dataclass(slots=True, kw_only=True)
class Watch:
    """Watches over all handlers of a stage."""

    record: Record
    is_dead: Callable[[str], bool]
    kill: Callable[[str], None]
    mishaps: dict[int, Mishap] = field(default_factory=dict)
    """By the number of the call."""

    holds: Holds = field(default_factory=Counter)
    handler_by_place: dict[tuple[str, str], PartitionHandler | BlockingPartitionHandler] = field(
        default_factory=dict
    )
    """The newest handler of each owner and partition."""

    def make(self, factory: HandlerFactory, owner_id: str) -> PartitionHandler:
        """Make a handler for an owner, and watch it."""
        users = factory()
        handler: PartitionHandler
        if isinstance(users, BlockingPartitionHandler):
            handler = _ThreadedOnStage(users, owner_id, self.holds)
        else:
            handler = users
        earlier = getattr(handler, _WATCH, None)
        if earlier is self:  # A factory may return the same one again,
            return handler
        if earlier is not None:  # and another stage may have had it.
            for name in _METHODS:
                delattr(handler, name)
        watched = _Watched(self, handler, users)
        for name in _METHODS:
            setattr(handler, name, getattr(watched, name))
        setattr(handler, _WATCH, self)
        return handler


class _Watched:
    """The methods that a handler is given instead of its own."""

    def __init__(
        self,
        watch: Watch,
        handler: PartitionHandler,
        users: PartitionHandler | BlockingPartitionHandler,
    ) -> None:
        self._watch = watch
        self._record = watch.record
        self._handler = handler
        self._users = users
        self._initialize = handler.initialize
        # Whatever it returns is passed on.
        self._process_events: Callable[..., Awaitable[object]] = handler.process_events
        self._process_idle = handler.process_idle
        self._process_error = handler.process_error
        self._close = handler.close

    async def initialize(self, context: PartitionContext) -> None:
        """Note who serves the partition from now on."""
        self._watch.handler_by_place[context.owner_id, context.partition_id] = self._users
        try:
            await self._initialize(context)
        except BaseException as error:
            self._record.not_opened(context, error)
            raise
        self._record.opened(context)

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> object:
        """Note the call and what came of it, and let happen what is to happen to it."""
        call = self._record.began(context, events)
        mishap = self._watch.mishaps.pop(call.number, None)
        try:
            result = await self._work(mishap, context, events)
        except BaseException as error:
            if not self._watch.is_dead(context.owner_id):
                self._record.failed(call, context, error)
            raise
        self._record.ended(call, context)
        return result

    async def _work(
        self, mishap: Mishap | None, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> object:
        if mishap is not None and mishap.error is not None and not mishap.is_after_work:
            raise mishap.error
        result = await self._process_events(context, events)
        if mishap is not None:
            if mishap.error is not None:
                raise mishap.error
            self._watch.kill(context.owner_id)
            await asyncio.Event().wait()
        return result

    async def process_idle(self, context: PartitionContext) -> None:
        """Tell the story of it."""
        self._record.tell(context.owner_id, f"partition {context.partition_id}: idle")
        await self._process_idle(context)

    async def process_error(self, context: PartitionContext, error: Exception) -> None:
        """Pass it on, but to the dead."""
        if not self._watch.is_dead(context.owner_id):
            await self._process_error(context, error)

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Note it and pass it on, but to the dead."""
        if not self._watch.is_dead(context.owner_id):
            self._record.closed(context, reason)
            await self._close(context, reason)
        elif isinstance(self._handler, _ThreadedOnStage):
            self._handler.end_threads()


class _ThreadedOnStage(ThreadedHandler):
    """Runs ordinary functions in their thread, with the stage's clock standing still meanwhile."""

    def __init__(self, handler: BlockingPartitionHandler, owner_id: str, holds: Holds) -> None:
        super().__init__(handler)
        self._owner_id = owner_id
        self._holds = holds

    def end_threads(self) -> None:
        """Let the threads end when they have nothing more to do; nobody calls any more."""
        for thread in self._threads():
            thread.end()

    async def _call(self, thread: HandlerThread, function: Callable[[], None]) -> None:
        with self._held(+1):
            await super()._call(thread, function)

    def _view(self, context: PartitionContext) -> ThreadContext:
        view = _LettingClockRun(context, lambda: self._held(-1))
        return super()._view(cast("PartitionContext", view))

    @contextmanager
    def _held(self, change: int) -> Iterator[None]:
        self._holds[self._owner_id] += change
        try:
            yield
        finally:
            self._holds[self._owner_id] -= change


class _LettingClockRun:
    """A context in whose coroutines the clock may run: the thread waits for them."""

    _context: PartitionContext
    _released: Callable[[], AbstractContextManager[None]]

    def __init__(
        self, context: PartitionContext, released: Callable[[], AbstractContextManager[None]]
    ) -> None:
        object.__setattr__(self, "_context", context)
        object.__setattr__(self, "_released", released)

    def __getattr__(self, name: str) -> object:
        value = getattr(self._context, name)
        if not inspect.iscoroutinefunction(value):
            return value

        async def call(*args: object, **settings: object) -> object:
            with self._released():
                return await value(*args, **settings)

        return call

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._context, name, value)
