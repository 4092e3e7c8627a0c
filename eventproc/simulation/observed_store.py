"""The store of a simulated processor; reports every call that arrives to the observer."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from eventproc.models import ClaimResult
from eventproc.ports import CheckpointStore, ForwardingStore
from eventproc.simulation.observer import Observer

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
