"""The connection of one processor to the store: adds latency, reports calls, ends with a crash.

A crash is simulated by silence: no call to the store and no call of a handler returns after it.
To the other processors that looks the same as a process that has ended.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from eventproc.models import ClaimResult
from eventproc.ports import CheckpointStore, ForwardingStore
from eventproc.simulation.observer import Observer

P = ParamSpec("P")
T = TypeVar("T")


class StoreConnection(ForwardingStore):
    """Wraps the store of one processor."""

    def __init__(
        self,
        store: CheckpointStore,
        owner_id: str,
        *,
        observer: Observer,
        latency: timedelta,
        rng: Random,
    ) -> None:
        super().__init__(store)
        self._owner_id = owner_id
        self._observer = observer
        self._way_s = latency.total_seconds() / 2
        self._rng = rng
        self._loop = asyncio.get_running_loop()
        self._revived: asyncio.Event | None = None

    def cut(self) -> None:
        """Simulate a crash of the processor."""
        self._revived = asyncio.Event()

    def release(self) -> None:
        """Let the calls that a crash stopped return, once the simulation is over."""
        if self._revived is not None:
            self._revived.set()

    async def alive(self) -> None:
        """Return at once; if the processor has crashed, not before ``release``."""
        while self._revived is not None and not self._revived.is_set():
            # A crashed process does not react to a time-out either: it would repeat the call.
            with suppress(asyncio.CancelledError):
                await self._revived.wait()

    async def forward(
        self,
        method: Callable[Concatenate[Any, P], Awaitable[T]],
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call the wrapped store, report its answer to the observer, and return it later."""
        await self._way()
        answer = await super().forward(method, *args, **options)
        self._report(method.__name__, answer)
        await self._way()
        return answer

    def _report(self, method: str, answer: object) -> None:
        now_s = self._loop.time()
        match method:
            case "list_ownership" | "list_members":
                is_ownership = method == "list_ownership"
                self._observer.listed(now_s, self._owner_id, is_ownership=is_ownership)
            case "claim_ownership":
                results = cast("Sequence[ClaimResult]", answer)
                self._observer.claimed(now_s, self._owner_id, results)
            case "announce_member" | "withdraw_member":
                self._observer.wrote(now_s, 1)
            case _:
                self._observer.asked_for_checkpoints(now_s)

    async def _way(self) -> None:
        """Wait for the latency of one direction: to the store, or back from it."""
        await asyncio.sleep(self._way_s * self._rng.uniform(0.5, 1.5))
        await self.alive()
