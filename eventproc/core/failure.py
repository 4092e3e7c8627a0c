"""What to do about a call of the handler that failed: what to try next, and when to give up.

Rule 1: what is known to be handled does not come again.
Rule 2: while nobody said which event of a call is to blame, each of them is tried alone: so at most
once more, and the culprit shows itself.
Rule 3: an event is given up only for failures that are its own.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from eventproc.models import ReceivedEvent

_E = TypeVar("_E", bound=ReceivedEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """What one failed call says of its events."""

    failed: Mapping[int, Exception]
    """By sequence number: events known to have failed, and why."""

    suspect: frozenset[int] = frozenset()
    """Any of these may be the culprit."""

    done: frozenset[int] = frozenset()
    """Known to be handled although the call failed."""


@dataclass(slots=True)
class Trial:
    """The failures of the events of one run, while they last."""

    alone: set[int] = field(default_factory=set)
    """Events to be tried by themselves."""

    attempt_by_number: dict[int, int] = field(default_factory=dict)
    error_by_number: dict[int, Exception] = field(default_factory=dict)

    def note(self, blame: Blame, transient: tuple[type[Exception], ...]) -> None:
        """Take down a failed call; errors that are *transient* are not counted."""
        self.alone |= blame.suspect | blame.failed.keys()
        for number, error in blame.failed.items():
            self.error_by_number[number] = error
            if not isinstance(error, transient):
                self.attempt_by_number[number] = self.attempt_by_number.get(number, 0) + 1

    def exhausted(self, attempts_max: int | None) -> list[int]:
        """Events that failed as often as they may."""
        if attempts_max is None:
            return []
        return sorted(n for n, count in self.attempt_by_number.items() if count >= attempts_max)

    def forget(self, numbers: Collection[int]) -> None:
        """These events are settled, in whatever way."""
        for number in numbers:
            self.alone.discard(number)
            self.attempt_by_number.pop(number, None)
            self.error_by_number.pop(number, None)


def blame(part: Sequence[ReceivedEvent], error: Exception) -> Blame:
    """Judge an error that names no event: it is the only one's fault, or anybody's."""
    numbers = [event.sequence_number for event in part]
    if len(numbers) == 1:
        return Blame(failed={numbers[0]: error})
    return Blame(failed={}, suspect=frozenset(numbers))


def next_part(pending: Sequence[_E], alone: Collection[int]) -> Sequence[_E]:
    """Return the next events to hand over: a suspect by itself, else all up to the next suspect."""
    if not alone:
        return pending
    if pending[0].sequence_number in alone:
        return pending[:1]
    for index, event in enumerate(pending):
        if event.sequence_number in alone:
            return pending[:index]
    return pending
