"""Replays dead letters by calling a handler directly, without a hub and without a group.

The handler is called as in a processor, with the same retries, waits and threads. There is no
lease, no checkpoint and no state: the position of the group is not changed.
"""

import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, Final

from eventproc._base.logs import get_logger
from eventproc._base.retries import Backoff, waits
from eventproc._base.tasks import users_call
from eventproc._core.delivery.progress import PartitionProgress
from eventproc._delivery.call_context import CallContext
from eventproc._delivery.checks import check_handler, class_of, first_checked
from eventproc._delivery.config import FailureAction, FailurePolicy
from eventproc._delivery.handler import BlockingPartitionHandler, HandlerFactory
from eventproc._delivery.handler_calls import HandlerCalls
from eventproc._delivery.handler_threads import ThreadedHandler
from eventproc._delivery.scope import PartitionIdentity, PartitionScope
from eventproc._group.pumps.stop_scope import StopScope
from eventproc.dead_letters._replay import ReplayTarget
from eventproc.errors import (
    ConfigurationError,
    LetterRefusedError,
    StateRefusedError,
    TransactionsRefusedError,
)
from eventproc.models import REPLAYED_FROM, CloseReason, DeadLetter, ReceivedEvent
from eventproc.models._dead_letter import describe_error
from eventproc.models._statistics import DeliveryCounters

CLOSE_MAX_S: Final = 30.0
"""Longest time for the ``close`` of a handler."""

OWNER_ID: Final = "dead-letters"


class HandlerTarget(ReplayTarget):
    """Calls a handler with the event of each letter, one after the other.

    Each partition of each group has a handler of its own, as in a processor. Before an event whose
    number is not above the last one, as in another replay, the handler is closed and a new one is
    made. A handler gets the event that was given up; ``event.replayed_from`` is the id of the
    letter.

    Args:
        handler: A handler class, or a function that makes a handler.
        attempts_max: How often an event is tried; then its letter stays.
        backoff: Waits between the attempts.

    Raises:
        ConfigurationError: the handler cannot work, or uses transactions.
    """

    def __init__(
        self, handler: HandlerFactory, *, attempts_max: int = 3, backoff: Backoff | None = None
    ) -> None:
        check_handler(handler)
        handler_class = class_of(handler)
        if handler_class is not None:
            _check_has_no_transactions(handler_class)
        self._make = first_checked(handler, key_concurrency=1, check=_check_has_no_transactions)
        self._policy = FailurePolicy(attempts_max=attempts_max, action=FailureAction.STOP)
        self._backoff = backoff or Backoff()
        self._open_handlers: dict[tuple[object, ...], _OpenHandler] = {}

    async def open(self) -> None:
        """Do nothing: handlers are made when they are needed."""

    async def close(self) -> None:
        """Close the handlers; errors are logged."""
        open_handlers, self._open_handlers = self._open_handlers, {}
        for opened in open_handlers.values():
            await opened.close()

    async def take(self, letter: DeadLetter) -> None:
        """Return when the handler has handled the event.

        Raises:
            LetterRefusedError: the handler failed ``attempts_max`` times, or in ``initialize``.
        """
        event = replace(
            letter.event,
            system_properties={**letter.event.system_properties, REPLAYED_FROM: letter.letter_id},
        )
        key = (letter.group.key, letter.partition_id)
        opened = await self._opened(key, letter)
        admitted = opened.progress.admit([event])
        if not admitted:
            await self._open_handlers.pop(key).close()
            opened = await self._opened(key, letter)
            admitted = opened.progress.admit([event])
            assert admitted, "a new handler has had no event"
        try:
            await opened.calls.deliver(admitted, opened.context)
        except LetterRefusedError:
            opened.context.complete(admitted)  # Let later letters pass this event.
            raise

    async def _opened(self, key: tuple[object, ...], letter: DeadLetter) -> "_OpenHandler":
        """Return the handler of a partition of a group; make one if there is none.

        Raises:
            LetterRefusedError: ``initialize`` failed.
        """
        opened = self._open_handlers.get(key)
        if opened is None:
            opened = self._open_handlers[key] = await self._begin(letter)
        return opened

    async def _begin(self, letter: DeadLetter) -> "_OpenHandler":
        """Make and initialize a handler.

        Raises:
            LetterRefusedError: ``initialize`` failed.
        """
        handler = self._make()
        if isinstance(handler, BlockingPartitionHandler):
            handler = ThreadedHandler(handler)
        identity = PartitionIdentity(
            partition_id=letter.partition_id, group=letter.group, owner_id=OWNER_ID
        )
        scope = PartitionScope(
            identity=identity,
            stop=StopScope(lambda: math.inf),  # There is no lease that could expire.
            counters=DeliveryCounters(),
            log=get_logger("eventproc.dead_letters", partition_id=letter.partition_id),
        )
        progress = PartitionProgress(has_state=False)
        context = ReplayContext(identity, progress)
        wait_s = waits(self._backoff)
        calls = HandlerCalls(
            handler,
            policy=self._policy,
            action=_refuse,
            scope=scope,
            wait_s=wait_s,
        )
        opened = _OpenHandler(calls, context, progress)
        try:
            await users_call(lambda: handler.initialize(context), context.variables)
        except BaseException as error:
            await opened.close()  # As a processor does; this ends the handler's threads, too.
            if not isinstance(error, Exception):
                raise
            raise LetterRefusedError(f"initialize failed: {_shown(error)}") from error
        return opened


@dataclass(frozen=True, slots=True)
class _OpenHandler:
    """The handler of one partition of one group."""

    calls: HandlerCalls
    context: "ReplayContext"
    progress: PartitionProgress

    async def close(self) -> None:
        """Close the handler; errors are logged."""
        await self.calls.close(self.context, CloseReason.SHUTDOWN, budget_s=CLOSE_MAX_S)


def _check_has_no_transactions(handler: type) -> None:
    if getattr(handler, "uses_transactions", False):
        raise ConfigurationError(
            f"handler {handler.__name__} uses transactions, which store the position of the group, "
            "and a replay straight through a handler does not move that position: replay these "
            "letters to the hub, without a handler"
        )


async def _refuse(_: ReceivedEvent, error: Exception | None, attempt_count: int) -> None:
    """Refuse the letter of an event that failed as often as the policy allows: it stays."""
    assert error is not None, "no process died"
    raise LetterRefusedError(
        f"the handler failed: {_shown(error)} (attempts: {attempt_count})"
    ) from error


def _shown(error: Exception) -> str:
    kind, message, _ = describe_error(error)
    return f"{kind}: {message}" if message else kind


class ReplayContext(CallContext):
    """The context of a handler that gets dead letters: without lease, checkpoint, lag and state."""

    @property
    def is_replay(self) -> bool:
        """Always true."""
        return True

    @property
    def is_owned(self) -> bool:
        """Always true, although there is no lease, so that the handler handles the event."""
        return True

    @property
    def checkpointed_sequence_number(self) -> None:
        """Unknown."""

    @property
    def lag(self) -> None:
        """Unknown."""

    @property
    def lag_seconds(self) -> None:
        """Unknown."""

    @property
    def state(self) -> bytes | None:
        """None: the state of the group belongs to its position, which a replay does not change."""
        return None

    @state.setter
    def state(self, value: bytes | None) -> None:  # noqa: ARG002 - whatever it is
        raise StateRefusedError(
            self.partition_id,
            "in a replay straight through a handler, which does not move the position that a state "
            "belongs to: replay this letter to the hub",
        )

    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Do nothing: the letter is removed when the call has returned."""

    def open_transaction(
        self,
        event: ReceivedEvent | None = None,  # noqa: ARG002 - whichever it is
        *,
        is_cancelled: Callable[[], bool] | None = None,  # noqa: ARG002
    ) -> AbstractAsyncContextManager[Any]:
        """Not supported: a transaction stores the position of the group with the effect.

        Raises:
            TransactionsRefusedError: always.
        """
        raise TransactionsRefusedError(
            "transaction() is not available in a replay straight through a handler, which does not "
            "move the position that it stores: replay this letter to the hub"
        )

    def pause(self) -> None:
        """Do nothing: letters come one by one."""

    def resume(self) -> None:
        """Do nothing."""
