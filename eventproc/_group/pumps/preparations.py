"""Makes handlers, and prepares those of what this processor is a backup of.

Rule 1: the handler that was prepared is the one that serves, after ``prepare`` has ended.
Rule 2: a handler that was prepared and is not needed any more is discarded.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from eventproc._base.logs import Logger, error_text
from eventproc._base.tasks import end, users_call, users_code
from eventproc._base.threads import in_own_thread, to_its_end
from eventproc._group.pumps.pump import Preparable, PumpT, Work


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A handler, and the task that makes it ready."""

    handler: Preparable
    task: asyncio.Task[None]


class Preparations:
    """Makes and prepares handlers. Used on the processor's event loop only."""

    def __init__(self, work: Work[PumpT], wait_s: Callable[[int], float], log: Logger) -> None:
        """Prepare nothing yet; *wait_s* returns the wait after the n-th failure in a row."""
        self._make = work.make_handler
        self._display_name = work.display_name
        self._kinds = work.handler_kinds
        self._wait_s = wait_s
        self._log = log
        self._has_no_prepare = False
        """Whether the handlers have no ``prepare``: known when the first one was made."""

        self._prepared_by_name: dict[str, _Prepared] = {}
        self._discarding: set[asyncio.Task[None]] = set()

    @property
    def ready(self) -> tuple[str, ...]:
        """The names whose handler is ready."""
        return tuple(sorted(n for n, made in self._prepared_by_name.items() if made.task.done()))

    def adjust(self, wanted: Collection[str], is_mine: Callable[[str], bool]) -> None:
        """Prepare handlers that are wanted; discard the others, unless their names are mine.

        Args:
            wanted: The names whose backup this processor is.
            is_mine: Whether this processor holds a name, or the plan gives it to this processor.
        """
        for name in sorted(set(wanted) - self._prepared_by_name.keys()):
            if not self._has_no_prepare and not is_mine(name):
                self._begin(name)
        for name in sorted(self._prepared_by_name.keys() - set(wanted)):
            if not is_mine(name):
                self._discard(name)

    def take(self, name: str) -> tuple[Preparable, Callable[[], Awaitable[None]]]:
        """Return a handler to serve, prepared or new.

        The function that comes with it returns when its ``prepare``, if it had one, has ended.
        """
        prepared = self._prepared_by_name.pop(name, None)
        if prepared is not None:
            prepared.task.cancel()

        async def ready() -> None:
            if prepared is not None:
                await asyncio.wait([prepared.task])

        return self._make() if prepared is None else prepared.handler, ready

    async def close(self) -> None:
        """Discard all handlers."""
        for name in list(self._prepared_by_name):
            self._discard(name)
        if self._discarding:
            await asyncio.wait(self._discarding)

    def _begin(self, name: str) -> None:
        try:
            with users_code():
                handler = self._make()
        except Exception as error:  # noqa: BLE001 - the user's code: made again by the next cycle
            self._log.warning("prepare_failed", **self._fields(name, error))
            return
        kind = self._kind_of(handler)
        if type(handler).prepare is kind.prepare:
            self._has_no_prepare = True
            return
        task = asyncio.create_task(self._prepare(name, handler), name=f"prepare-{name}")
        self._prepared_by_name[name] = _Prepared(handler, task)

    async def _prepare(self, name: str, handler: Preparable) -> None:
        failure_count = 0
        while True:
            try:
                await self._call(handler, handler.prepare, name)
            except Exception as error:  # noqa: BLE001 - the user's code
                failure_count += 1
                self._log.warning("prepare_failed", **self._fields(name, error))
                await asyncio.sleep(self._wait_s(failure_count))
            else:
                self._log.info("handler_prepared", handler_of=self._display_name(name))
                return

    def _discard(self, name: str) -> None:
        prepared = self._prepared_by_name.pop(name)

        async def discard() -> None:
            await end([prepared.task])
            try:
                await self._call(prepared.handler, prepared.handler.discard, name)
            except Exception as error:  # noqa: BLE001 - the user's code
                self._log.warning("discard_failed", **self._fields(name, error))

        task = asyncio.create_task(discard(), name=f"discard-{name}")
        self._discarding.add(task)
        task.add_done_callback(self._discarding.discard)

    async def _call(self, handler: Preparable, method: Callable[[str], object], name: str) -> None:
        """Await a coroutine method, or run a blocking one in a thread: to its end if cancelled."""
        call: Callable[[], Any] = partial(method, self._display_name(name))
        if self._kind_of(handler) is self._kinds[1]:
            blocking = call
            call = lambda: to_its_end(in_own_thread(blocking, "eventproc-prepare"))  # noqa: E731
        await users_call(call)

    def _kind_of(self, handler: Preparable) -> type[Preparable]:
        coroutine_kind, blocking_kind = self._kinds
        return blocking_kind if isinstance(handler, blocking_kind) else coroutine_kind

    def _fields(self, name: str, error: Exception) -> dict[str, Any]:
        return {
            "handler_of": self._display_name(name),
            "error": error_text(error),
            "exc_info": error,
        }
