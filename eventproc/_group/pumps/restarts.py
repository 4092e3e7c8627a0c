"""Which partitions may get a pump again after one that failed, when, and how.

Rule 1: a partition that the failure policy stopped stays owned, and is not served until ``resume``.
Then the next pump tries once what the policy gave up.
Rule 2: after an error, a refusal of the source or a stall, the next pump waits for a back-off.
"""

import asyncio
from collections.abc import Callable, Collection
from random import Random

from eventproc._base.logs import Logger, error_text
from eventproc._base.retries import Backoff, failures_in_a_row, waits
from eventproc.models import CloseReason


class Restarts:
    """What the former pumps of partitions mean for the next ones."""

    def __init__(
        self, backoff: Backoff, rng: Random, *, changed: Callable[[], None], log: Logger
    ) -> None:
        """*changed* is called after each wait."""
        self._backoff = backoff
        self._wait_s = waits(backoff, rng)
        self._changed = changed
        self._log = log
        self._failures: dict[str, tuple[int, float]] = {}
        """Failures in a row of a partition's pump, and when it may start again."""

        self._stopped: set[str] = set()
        self._forced: set[str] = set()
        """Partitions whose next pump ignores the limit of deliveries for its first event."""

    @property
    def failed(self) -> frozenset[str]:
        """Partitions whose last pump that ended had failed, and is tried again after a wait."""
        return frozenset(self._failures)

    @property
    def stopped(self) -> tuple[str, ...]:
        """Partitions that the failure policy stopped: owned, and not served until ``resume``."""
        return tuple(sorted(self._stopped))

    @property
    def held_back(self) -> set[str]:
        """Partitions that may not get a pump now."""
        now_s = asyncio.get_running_loop().time()
        return self._stopped | {p for p, (_, until_s) in self._failures.items() if now_s < until_s}

    def keep_only(self, owned: Collection[str]) -> None:
        """Forget what was stopped, unless it is still owned."""
        self._stopped &= set(owned)
        self._forced &= set(owned)

    def resume(self, partition_id: str) -> None:
        """Serve a partition again, if the failure policy stopped it."""
        if partition_id in self._stopped:
            self._stopped.discard(partition_id)
            self._forced.add(partition_id)
            self._changed()

    def take_forced(self, partition_id: str) -> bool:
        """Return whether the pump that starts now is the first one after a ``resume``."""
        is_forced = partition_id in self._forced
        self._forced.discard(partition_id)
        return is_forced

    def note(
        self,
        partition_id: str,
        reason: CloseReason,
        error: Exception | None = None,
        *,
        ran_s: float,
    ) -> None:
        """Note how a pump ended after *ran_s* seconds: by *error*, or else for *reason*."""
        if error is None and reason not in {CloseReason.SOURCE_FAILED, CloseReason.STALLED}:
            if reason is CloseReason.HANDLER_FAILED:
                self._stopped.add(partition_id)
            self._failures.pop(partition_id, None)
            return
        before, _ = self._failures.get(partition_id, (0, 0.0))
        count = failures_in_a_row(before, ran_s, self._backoff)
        wait_s = self._wait_s(count)
        loop = asyncio.get_running_loop()
        self._failures[partition_id] = (count, loop.time() + wait_s)
        loop.call_later(wait_s, self._changed)
        self._log.error(
            "pump_failed",
            partition_id=partition_id,
            reason=reason.value,
            error=None if error is None else error_text(error),
            retry_after_s=round(wait_s, 3),
            exc_info=error,
        )
