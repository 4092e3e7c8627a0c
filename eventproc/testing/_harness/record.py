"""Records what happened in a harness: calls, closings, and a history as text."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from eventproc._delivery.blame import blamed, checked
from eventproc._delivery.call_context import CallContext
from eventproc._delivery.handler import PartitionContext
from eventproc.models import CloseReason, ReceivedEvent

HISTORY_LINES_MAX: Final = 40
"""Number of the last lines of the history in the message of a failed assertion."""


@dataclass(slots=True, kw_only=True)
class HandlerCall:
    """One call of ``process_events``."""

    number: int
    """From 1, over all calls in the harness, repeated ones included."""

    owner_id: str
    partition_id: str
    events: Sequence[ReceivedEvent]
    began_at: datetime
    error: BaseException | None = None
    """What the call raised; ``asyncio.CancelledError`` if it was cancelled."""

    is_over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """One call of ``close``."""

    owner_id: str
    partition_id: str
    reason: CloseReason
    at: datetime


@dataclass(slots=True, kw_only=True)
class Record:
    """Records the calls of all handlers and their outcomes."""

    now: Callable[[], datetime]
    now_s: Callable[[], float]
    calls: list[HandlerCall] = field(default_factory=list)
    closings: list[Closing] = field(default_factory=list)
    handled: list[tuple[str, ReceivedEvent]] = field(default_factory=list)
    """Partition id and event, in the order in which calls ended."""

    serving: set[tuple[str, str]] = field(default_factory=set)
    """Owner id and partition id, from the end of ``initialize`` to ``close``."""

    changed: asyncio.Event = field(default_factory=asyncio.Event)
    lines: list[str] = field(default_factory=list)
    last_error: BaseException | None = None

    def add(self, owner_id: str, text: str) -> None:
        """Add a line to the history."""
        self.lines.append(f"{self.now_s():12.3f}  {owner_id}  {text}")
        self.changed.set()

    def opened(self, context: PartitionContext) -> None:
        """Record that ``initialize`` returned."""
        self.serving.add((context.owner_id, context.partition_id))
        after = context.sequence_number
        self.add(
            context.owner_id,
            f"partition {context.partition_id}: open, "
            + ("nothing checkpointed" if after is None else f"handled up to {after}"),
        )

    def not_opened(self, context: PartitionContext, error: BaseException) -> None:
        """Record that ``initialize`` raised."""
        self.last_error = error
        self.add(
            context.owner_id, f"partition {context.partition_id}: initialize failed: {error!r}"
        )

    def began(self, context: PartitionContext, events: Sequence[ReceivedEvent]) -> HandlerCall:
        """Record that ``process_events`` is called."""
        call = HandlerCall(
            number=len(self.calls) + 1,
            owner_id=context.owner_id,
            partition_id=context.partition_id,
            events=tuple(events),
            began_at=self.now(),
        )
        self.calls.append(call)
        self.add(context.owner_id, f"{_name(call)}: {_range(events)}")
        return call

    def ended(self, call: HandlerCall, context: PartitionContext) -> None:
        """Record that the call returned, so all of its events are handled."""
        self._note(call, None, call.events)
        self.add(context.owner_id, f"{_name(call)}: done")

    def failed(self, call: HandlerCall, context: PartitionContext, error: BaseException) -> None:
        """Record that the call raised; the events that it had marked as done are handled."""
        self._note(call, error, _handled(call.events, context, error))
        if isinstance(error, asyncio.CancelledError):
            self.add(context.owner_id, f"{_name(call)}: cut off")
        else:
            self.last_error = error
            self.add(context.owner_id, f"{_name(call)}: failed: {error!r}")

    def _note(
        self, call: HandlerCall, error: BaseException | None, handled: Sequence[ReceivedEvent]
    ) -> None:
        call.is_over = True
        call.error = error
        self.handled += [(call.partition_id, event) for event in handled]

    def closed(self, context: PartitionContext, reason: CloseReason) -> None:
        """Record that ``close`` is called."""
        self.serving.discard((context.owner_id, context.partition_id))
        self.closings.append(
            Closing(
                owner_id=context.owner_id,
                partition_id=context.partition_id,
                reason=reason,
                at=self.now(),
            )
        )
        self.add(
            context.owner_id, f"partition {context.partition_id}: close, reason {reason.value}"
        )

    def died(self, owner_id: str) -> None:
        """Record that an owner was killed."""
        self.serving = {(owner, p) for owner, p in self.serving if owner != owner_id}
        self.add(owner_id, "is killed")

    def history(self) -> str:
        """Return everything so far, one line each: seconds, owner id, what happened."""
        return "\n".join(self.lines)

    def failure(self, what: str) -> AssertionError:
        """Make an assertion error with the end of the history, caused by a handler's last error."""
        shown = self.lines[-HISTORY_LINES_MAX:]
        left_out = len(self.lines) - len(shown)
        before = f"  ({left_out} lines before)\n" if left_out else ""
        failure = AssertionError(
            f"{what}\n\nWhat happened (seconds of virtual time, owner):\n{before}"
            + "\n".join(shown)
        )
        failure.__cause__ = self.last_error
        return failure


def _handled(
    events: Sequence[ReceivedEvent], context: PartitionContext, error: BaseException
) -> Sequence[ReceivedEvent]:
    """Return the events that count as handled although their call failed, so are not repeated."""

    def unhandled(some: Sequence[ReceivedEvent]) -> Sequence[ReceivedEvent]:
        return context.unhandled(some) if isinstance(context, CallContext) else some

    left = {event.sequence_number for event in unhandled(events)}
    if isinstance(error, Exception):
        for part in blamed(events, checked(error, events), unhandled).done:
            left -= {event.sequence_number for event in part}
    return [event for event in events if event.sequence_number not in left]


def _name(call: HandlerCall) -> str:
    return f"partition {call.partition_id}: call {call.number}"


def _range(events: Sequence[ReceivedEvent]) -> str:
    first, last = events[0].sequence_number, events[-1].sequence_number
    return f"event {first}" if first == last else f"{len(events)} events, {first} to {last}"
