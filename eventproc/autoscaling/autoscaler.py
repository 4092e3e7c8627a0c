"""Votes periodically, and wakes the callers that wait for another vote."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from eventproc.concurrency.tasks import cancellation_kept
from eventproc.core.scaling.decision import Decision, Reason, ScalingMemory, ScalingRules, decide
from eventproc.core.scaling.readings import Reading
from eventproc.errors import SourceError, StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A decision, and the error if store or hub did not answer."""

    decision: Decision
    error: str | None = None

    def as_json(self) -> dict[str, object]:
        """The vote as JSON: rates in events per second, ``None`` for what is not known."""
        decision = self.decision
        return {
            "replicas": decision.replicas,
            "reason": decision.reason.value,
            "backlog": decision.backlog,
            "arrival_per_s": _rounded(decision.arrival_per_s),
            "drain_per_s": _rounded(decision.drain_per_s),
            "rate_of_one": _rounded(decision.rate_of_one),
            **({} if self.error is None else {"error": self.error}),
        }


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 3)


class Autoscaler:
    """The votes on one group."""

    def __init__(self, read: Callable[[], Awaitable[Reading]], rules: ScalingRules) -> None:
        """*read* reads the group; it may raise a ``StoreError`` or a ``SourceError``."""
        self._read = read
        self._rules = rules
        self._memory = ScalingMemory()
        self._changed = asyncio.Condition()
        self.vote = Vote(decision=Decision(replicas=None, reason=Reason.NOT_READ))
        """The newest vote."""

    async def decide(self) -> Vote:
        """Read the group, and vote.

        Raises:
            StoreError: The store did not answer, or refuses.
            SourceError: The hub did not answer, or refuses.
        """
        await self._decide_on(await self._read(), None)
        return self.vote

    async def run(self, every: timedelta) -> None:
        """Vote periodically, until cancelled. Without an answer the vote keeps its number."""
        while True:
            try:
                with cancellation_kept():
                    reading = await self._read()
            except (StoreError, SourceError) as error:
                await self._decide_on(None, " ".join(str(error).split()))
            else:
                await self._decide_on(reading, None)
            await asyncio.sleep(every.total_seconds())

    async def changes(self) -> AsyncIterator[Vote]:
        """Yield the newest vote, then each with another number, or at begin or end of an outage."""
        shown: Vote | None = None
        while True:
            async with self._changed:
                while not _differs(self.vote, shown):
                    await self._changed.wait()
                shown = self.vote
            yield shown

    async def activity(self) -> AsyncIterator[bool]:
        """Yield whether the group needs any process, then each change of that."""
        former: bool | None = None
        async for vote in self.changes():
            replicas = vote.decision.replicas
            if replicas is not None and (replicas > 0) is not former:
                former = replicas > 0
                yield former

    async def _decide_on(self, reading: Reading | None, error: str | None) -> None:
        self._memory, decision = decide(self._memory, reading, self._rules)
        async with self._changed:
            self.vote = Vote(decision=decision, error=error)
            self._changed.notify_all()


def _differs(vote: Vote, shown: Vote | None) -> bool:
    if vote.decision.reason is Reason.NOT_READ:
        return False
    return (
        shown is None
        or vote.decision.replicas != shown.decision.replicas
        or (vote.error is None) is not (shown.error is None)
    )
