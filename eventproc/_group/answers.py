"""When the store answered this processor's requests for the group's records."""

from collections.abc import Callable, Iterable

from eventproc.models import WriteOutcome


class Answers:
    """Notes answers to reads and writes of member and ownership records."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._newest_s: float | None = None
        self._silence_s = 0.0
        self.unanswered_since_s: float | None = None
        """When the first write was sent since the last answer to one; ``None``: it was answered."""

    def note_sent(self) -> None:
        """Note that a write is sent now."""
        if self.unanswered_since_s is None:
            self.unanswered_since_s = self._clock()

    def note_outcomes(self, outcomes: Iterable[WriteOutcome]) -> None:
        """Note what came of writes; a refused condition is an answer, too."""
        if any(outcome is not WriteOutcome.UNKNOWN for outcome in outcomes):
            self.unanswered_since_s = None
            self.note_answer()

    def note_answer(self) -> None:
        """Note that the store has answered."""
        now_s = self._clock()
        if self._newest_s is not None:
            self._silence_s = max(self._silence_s, now_s - self._newest_s)
        self._newest_s = now_s

    def take_silence_s(self) -> float:
        """Return the longest time without an answer since the last call of this."""
        longest_s, self._silence_s = self._silence_s, 0.0
        return longest_s
