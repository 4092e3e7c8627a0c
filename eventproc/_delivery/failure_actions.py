"""Carries out the failure policy's action: store a dead letter, skip the event, or stop.

Rule: with ``DEAD_LETTER`` the position moves past an event only after its dead letter is stored.
While the sink fails, the partition waits and tries again.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import assert_never

from eventproc._base.logs import ConditionLogger, error_text
from eventproc._base.tasks import users_call
from eventproc._delivery.config import FailureAction
from eventproc._delivery.scope import PartitionScope
from eventproc._group.pumps.stop_scope import PartitionStoppedError
from eventproc.errors import DeadLetterError
from eventproc.models import CloseReason, DeadLetter, ReceivedEvent
from eventproc.models._dead_letter import describe_error
from eventproc.ports import DeadLetterSink


class FailureActions:
    """Applies the failure policy's action to events that are given up."""

    def __init__(
        self,
        action: FailureAction,
        *,
        sink: DeadLetterSink | None,
        scope: PartitionScope,
        wait_s: Callable[[int], float],
    ) -> None:
        self._action = action
        self._sink = sink
        self._identity = scope.identity
        self._stop_scope = scope.stop
        self._counters = scope.counters
        self._log = scope.log
        self._wait_s = wait_s

    async def apply(
        self, event: ReceivedEvent, error: Exception | None, attempt_count: int
    ) -> None:
        """Apply the action; return when the position may move past the event.

        Raises:
            PartitionStoppedError: the action is ``STOP``.
        """
        facts = {
            "sequence_number": event.sequence_number,
            "attempt_count": attempt_count,
            "error": error_text(error) if error is not None else describe_error(None)[1],
        }
        match self._action:
            case FailureAction.DEAD_LETTER:
                await self._store(event, error, attempt_count)
                self._counters.dead_lettered_count += 1
                self._log.warning("event_dead_lettered", **facts)
            case FailureAction.SKIP:
                self._counters.skipped_count += 1
                self._log.warning("event_skipped", **facts)
            case FailureAction.STOP:
                self._log.error("event_stopped_partition", **facts)
                raise PartitionStoppedError(CloseReason.HANDLER_FAILED) from error
            case _:
                assert_never(self._action)

    async def _store(
        self, event: ReceivedEvent, error: Exception | None, attempt_count: int
    ) -> None:
        error_type, error_message, traceback = describe_error(error)
        letter = DeadLetter(
            event=event.storable(),
            group=self._identity.group,
            partition_id=self._identity.partition_id,
            owner_id=self._identity.owner_id,
            attempt_count=attempt_count,
            error_type=error_type,
            error_message=error_message,
            traceback=traceback,
            given_up_at=datetime.now(UTC),
        )
        failure = ConditionLogger(self._log, "dead_letter_failed", "dead_letter_recovered")
        while True:
            with self._stop_scope.waiting():
                refusal = await self._try_to_store(letter)
                if refusal is None:
                    break
                is_expected = isinstance(refusal, DeadLetterError)
                failure.note(
                    is_error=True,
                    attempt=failure.count + 1,
                    error=str(refusal) if is_expected else error_text(refusal),
                    exc_info=None if is_expected else refusal,
                )
                await asyncio.sleep(self._wait_s(failure.count))
        failure.end(attempt_count=failure.count + 1)

    async def _try_to_store(self, letter: DeadLetter) -> Exception | None:
        """Return why the letter is not stored, or ``None``; a user's sink may raise anything."""
        sink = self._sink
        assert sink is not None, "checked when the processor was built"
        try:
            await users_call(lambda: sink.store(letter))
        except Exception as refusal:  # noqa: BLE001 - the user's code
            return refusal
        return None
