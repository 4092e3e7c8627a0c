"""Wraps the user's handlers: records calls, injects failures, and drops calls after a kill.

The methods are replaced on each instance instead of wrapping it in another class, so that the
handler keeps its type and its other attributes.
"""

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Final, cast

from eventproc._delivery.checks import check_made
from eventproc._delivery.handler import (
    BlockingPartitionHandler,
    HandlerFactory,
    PartitionContext,
    PartitionHandler,
)
from eventproc._delivery.handler_threads import HandlerThread, ThreadedHandler
from eventproc.models import CloseReason, ReceivedEvent
from eventproc.testing._harness.record import Record

_MONITOR: Final = "_eventproc_monitor"
"""The attribute of a handler that refers to its monitor."""

_METHODS: Final = ("initialize", "process_events", "on_idle", "process_error", "close")

Holds = Counter[str]
"""Calls under way in threads, for each owner. While there are any, virtual time stands still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFailure:
    """A failure to inject into one call."""

    error: Exception | None
    """``None``: the owner is killed after the handler's work, before the call returns."""

    is_after_work: bool


@dataclass(slots=True, kw_only=True)
class HandlerMonitor:
    """Makes and monitors all handlers of a harness."""

    record: Record
    is_dead: Callable[[str], bool]
    kill: Callable[[str], None]
    injected_failures: dict[int, InjectedFailure] = field(default_factory=dict)
    """Keyed by the number of the call."""

    holds: Holds = field(default_factory=Counter)
    handler_by_place: dict[tuple[str, str], PartitionHandler | BlockingPartitionHandler] = field(
        default_factory=dict
    )
    """The newest handler of each owner and partition."""

    def make(self, factory: HandlerFactory, owner_id: str) -> PartitionHandler:
        """Make a handler for an owner, and wrap its methods."""
        users = factory()
        check_made(users)
        handler: PartitionHandler
        if isinstance(users, BlockingPartitionHandler):
            handler = _ThreadedInHarness(users, owner_id, self.holds)
        else:
            handler = users
        earlier = getattr(handler, _MONITOR, None)
        if earlier is self:  # the factory returned the same instance again
            return handler
        if earlier is not None:  # another harness has wrapped this instance
            for name in _METHODS:
                delattr(handler, name)
        watched = _MonitoredMethods(self, handler, users)
        for name in _METHODS:
            setattr(handler, name, getattr(watched, name))
        setattr(handler, _MONITOR, self)
        return handler


class _MonitoredMethods:
    """The methods that replace a handler's own."""

    def __init__(
        self,
        monitor: HandlerMonitor,
        handler: PartitionHandler,
        users: PartitionHandler | BlockingPartitionHandler,
    ) -> None:
        self._monitor = monitor
        self._record = monitor.record
        self._handler = handler
        self._users = users
        self._initialize = handler.initialize
        # any return value is passed on
        self._process_events: Callable[..., Awaitable[object]] = handler.process_events
        self._process_idle = handler.on_idle
        self._process_error = handler.process_error
        self._close = handler.close

    async def initialize(self, context: PartitionContext) -> None:
        """Record the partition's handler, and call ``initialize``."""
        self._monitor.handler_by_place[context.owner_id, context.partition_id] = self._users
        try:
            await self._initialize(context)
        except BaseException as error:
            self._record.not_opened(context, error)
            raise
        self._record.opened(context)

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> object:
        """Record the call and its outcome, and inject its failure if there is one."""
        call = self._record.began(context, events)
        injected = self._monitor.injected_failures.pop(call.number, None)
        try:
            result = await self._work(injected, context, events)
        except BaseException as error:
            if not self._monitor.is_dead(context.owner_id):
                self._record.failed(call, context, error)
            raise
        self._record.ended(call, context)
        return result

    async def _work(
        self,
        injected: InjectedFailure | None,
        context: PartitionContext,
        events: Sequence[ReceivedEvent],
    ) -> object:
        if injected is not None and injected.error is not None and not injected.is_after_work:
            raise injected.error
        result = await self._process_events(context, events)
        if injected is not None:
            if injected.error is not None:
                raise injected.error
            self._monitor.kill(context.owner_id)
            await asyncio.Event().wait()
        return result

    async def on_idle(self, context: PartitionContext) -> None:
        """Record the call, and pass it on."""
        self._record.add(context.owner_id, f"partition {context.partition_id}: idle")
        await self._process_idle(context)

    async def process_error(self, context: PartitionContext, error: Exception) -> None:
        """Pass the call on, unless the owner was killed."""
        if not self._monitor.is_dead(context.owner_id):
            await self._process_error(context, error)

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Record the call and pass it on, unless the owner was killed."""
        if not self._monitor.is_dead(context.owner_id):
            self._record.closed(context, reason)
            await self._close(context, reason)
        elif isinstance(self._handler, _ThreadedInHarness):
            self._handler.end_threads()


class _ThreadedInHarness(ThreadedHandler):
    """Runs blocking functions in their thread, while virtual time stands still."""

    def __init__(self, handler: BlockingPartitionHandler, owner_id: str, holds: Holds) -> None:
        super().__init__(handler)
        self._owner_id = owner_id
        self._holds = holds

    def end_threads(self) -> None:
        """Let the threads end after their current call."""
        for thread in self._threads():
            thread.end()

    async def _call(self, thread: HandlerThread, function: Callable[[], None]) -> None:
        with self._held(+1):
            await super()._call(thread, function)

    def _seen(self, context: PartitionContext) -> PartitionContext:
        seen = _ClockReleasingContext(context, lambda: self._held(-1))
        return cast("PartitionContext", seen)

    @contextmanager
    def _held(self, change: int) -> Iterator[None]:
        self._holds[self._owner_id] += change
        try:
            yield
        finally:
            self._holds[self._owner_id] -= change


class _ClockReleasingContext:
    """A context that lets virtual time pass while the thread waits for one of its coroutines."""

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
