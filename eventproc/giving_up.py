"""What becomes of an event that is given up: a dead letter, nothing, or a halt.

Rule: an event is passed over only after its dead letter is stored. A sink that does not store it
holds the partition back, and is tried until it does.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import assert_never

from eventproc.config import FailureAction
from eventproc.context import PartitionIdentity
from eventproc.deadletter import DeadLetter, told
from eventproc.ending import Ending, GivenUpError, is_cancelled
from eventproc.errors import DeadLetterError, HandlerCancelledError
from eventproc.logs import Logger, shown
from eventproc.models import CloseReason, ReceivedEvent
from eventproc.ports import DeadLetterSink
from eventproc.statistics import Tally


class GivingUp:
    """Carries out what the failure policy says about an event that cannot be handled."""

    def __init__(
        self,
        identity: PartitionIdentity,
        *,
        then: FailureAction,
        sink: DeadLetterSink | None,
        ending: Ending,
        wait_s: Callable[[int], float],
        tally: Tally,
        log: Logger,
    ) -> None:
        self._identity = identity
        self._then = then
        self._sink = sink
        self._ending = ending
        self._wait_s = wait_s
        self._tally = tally
        self._log = log

    async def settle(
        self, event: ReceivedEvent, error: Exception | None, attempt_count: int
    ) -> None:
        """Return when the event may be passed over.

        Raises:
            GivenUpError: the policy stops the partition.
        """
        facts = {
            "sequence_number": event.sequence_number,
            "attempt_count": attempt_count,
            "error": shown(error) if error is not None else told(None)[1],
        }
        match self._then:
            case FailureAction.DEAD_LETTER:
                await self._store(event, error, attempt_count)
                self._tally.dead_lettered_count += 1
                self._log.warning("event_dead_lettered", **facts)
            case FailureAction.SKIP:
                self._tally.skipped_count += 1
                self._log.warning("event_skipped", **facts)
            case FailureAction.STOP:
                self._log.error("event_stopped_partition", **facts)
                raise GivenUpError(CloseReason.HANDLER_FAILED)
            case _:
                assert_never(self._then)

    async def _store(
        self, event: ReceivedEvent, error: Exception | None, attempt_count: int
    ) -> None:
        error_type, error_message, traceback = told(error)
        letter = DeadLetter(
            event=event,
            group=self._identity.group,
            partition_id=self._identity.partition_id,
            owner_id=self._identity.owner_id,
            attempt_count=attempt_count,
            error_type=error_type,
            error_message=error_message,
            traceback=traceback,
            given_up_at=datetime.now(UTC),
        )
        attempt = 0
        while True:
            async with self._ending.waiting():
                refusal = await self._try_to_store(letter)
                if refusal is None:
                    break
                attempt += 1
                is_expected = isinstance(refusal, DeadLetterError)
                log = self._log.error if attempt == 1 else self._log.debug
                log(
                    "dead_letter_delayed",
                    attempt=attempt,
                    error=str(refusal) if is_expected else shown(refusal),
                    exc_info=None if is_expected else refusal,
                )
                await asyncio.sleep(self._wait_s(attempt))
        if attempt:
            self._log.info("dead_letter_stored_at_last", attempt_count=attempt + 1)

    async def _try_to_store(self, letter: DeadLetter) -> Exception | None:
        """Return why the letter is not stored: whatever a sink raises, it may be of the user's."""
        assert self._sink is not None, "checked when the processor was built"
        try:
            await self._sink.store(letter)
        except asyncio.CancelledError as stray:
            if is_cancelled():
                raise
            return HandlerCancelledError(stray)
        except Exception as refusal:  # noqa: BLE001 - the user's code
            return refusal
        return None
