"""Renews the leases of a run and watches the store, on the store's loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from eventproc._base.tasks import end, together
from eventproc._group.leases import Leases
from eventproc._runtime.parts import MemberParts
from eventproc._runtime.store_thread import StoreExecutor
from eventproc.errors import StoreError


class Renewals:
    """The task on the store's loop that keeps the leases until it is cancelled there.

    To cancel what awaits it on the processor's loop is not enough: a call on the store's loop runs
    to its end.
    """

    def __init__(
        self,
        parts: MemberParts,
        leases: Leases,
        executor: StoreExecutor,
        changed: Callable[[], None],
    ) -> None:
        """*changed* is called on the processor's loop at each change that the store tells of."""
        self._parts = parts
        self._leases = leases
        self._executor = executor
        self._changed = changed
        self._task: asyncio.Task[object] | None = None

    async def keep(self) -> None:
        """On the store's loop: renew the leases and watch the store; an error in one ends both."""
        self._task = asyncio.current_task()
        await together(self._leases.keep(), self._watch())

    async def cancel(self) -> None:
        """On the store's loop: cancel the renewals, and return when none is under way."""
        if self._task is not None:
            await end([self._task])

    async def _watch(self) -> None:
        parts = self._parts
        with suppress(StoreError):  # It is logged, and cycles are run periodically.
            await parts.store.watch(
                parts.group,
                parts.member.owner_id,
                lambda: self._executor.call_soon(self._changed),
            )
