"""The store as a simulated process has it: over a faulty connection, under the observer's eyes.

A request is carried out when it arrives, even if its sender is paused, killed or gone by then. The
answer waits until the sender runs again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar, cast

from eventproc._simulation.observer import Observer
from eventproc.models import ClaimResult, ConsumerGroup, OwnershipClaim
from eventproc.ports import CheckpointStore, ForwardingStore
from eventproc.testing._faults import Fate, FaultyCheckpointStore
from eventproc.testing._processes import Wire

P = ParamSpec("P")
T = TypeVar("T")


class ObservedStore(ForwardingStore):
    """Wraps the store of one processor."""

    def __init__(self, store: CheckpointStore, owner_id: str, observer: Observer) -> None:
        super().__init__(store)
        self._owner_id = owner_id
        self._observer = observer

    async def forward(
        self,
        method: Callable[Concatenate[Any, P], Awaitable[T]],
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call the wrapped store, and report its answer to the observer."""
        answer = await super().forward(method, *args, **options)
        self._report(method.__name__, answer)
        return answer

    def _report(self, method: str, answer: object) -> None:
        match method:
            case "list_ownership" | "list_members":
                self._observer.listed(self._owner_id, is_ownership=method == "list_ownership")
            case "claim_ownership":
                results = cast("Sequence[ClaimResult]", answer)
                self._observer.claimed(self._owner_id, results)
            case "announce_member" | "withdraw_member":
                self._observer.wrote(1)
            case _:
                self._observer.asked_for_checkpoints()


Answered: TypeAlias = asyncio.Future[tuple[T] | None]


class StoreConnection(FaultyCheckpointStore):
    """Wraps the store of one process; several claims are one request."""

    def __init__(self, store: CheckpointStore, rng: Random, wire: Wire) -> None:
        """Wrap *store*; its calls may wait only for other tasks, not for time to pass."""
        super().__init__(store, rng)
        self.fate: Callable[[str, Fate], Fate] | None = None
        """Changes the fate that was drawn for a request; called with the name of the method."""

        self._wire = wire
        self._method = ""

    async def forward(
        self,
        method: Callable[Concatenate[Any, P], Awaitable[T]],
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call the wrapped store; raise ``StoreUnavailableError`` without an answer."""
        self._method = method.__name__
        return await super().forward(method, *args, **options)

    def _draw_fate(self) -> Fate:
        """Draw the fate of the request that is being sent."""
        drawn = super()._draw_fate()
        return drawn if self.fate is None else self.fate(self._method, drawn)

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Call the wrapped store once; without an answer each claim is ``UNKNOWN``."""
        return await ForwardingStore.claim_ownership(self, group, claims)

    async def _attempt(self, call: Callable[[], Awaitable[T]]) -> tuple[T] | None:
        fate = self._draw_fate()
        answered: Answered[T] = asyncio.get_running_loop().create_future()
        self._wire.after(fate.way_there_s, self._arrive, call, fate, answered)
        return await answered

    def _arrive(self, call: Callable[[], Awaitable[T]], fate: Fate, answered: Answered[T]) -> None:
        if fate.is_carried_out and not self.is_out:
            answer = (finished(call()),)
            self._wire.after(fate.way_back_s, self._come_back, answer, fate, answered)
        else:
            self._wire.after(fate.silence_s, _answer, answered, None)

    def _come_back(self, answer: tuple[T], fate: Fate, answered: Answered[T]) -> None:
        # An outage that began during the call loses its answer, too.
        if fate.is_answered and not self.is_out:
            _answer(answered, answer)
        else:
            self._wire.after(fate.silence_s, _answer, answered, None)


def finished(call: Awaitable[T]) -> T:
    """Run a call of a store in memory to its end at once; return its result.

    Raises:
        RuntimeError: The call waits for time to pass or for another task.
    """
    steps = call.__await__()
    while True:
        try:
            yielded = next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        if yielded is not None:  # ``asyncio.sleep(0)`` yields None
            raise RuntimeError("a simulated store must answer without waiting")


def _answer(answered: Answered[T], answer: tuple[T] | None) -> None:
    if not answered.done():
        answered.set_result(answer)
