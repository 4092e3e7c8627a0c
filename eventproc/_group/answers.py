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

        self._has_failed = False
        """Whether a write since then has ended without an answer."""

        self._unanswered_s = 0.0

    def note_sent(self) -> None:
        """Note that a write is sent now."""
        if self.unanswered_since_s is None:
            self.unanswered_since_s = self._clock()

    def note_outcomes(self, outcomes: Iterable[WriteOutcome]) -> None:
        """Note what came of writes; a refused condition is an answer, too."""
        known = [outcome is not WriteOutcome.UNKNOWN for outcome in outcomes]
        if any(known):
            if self._has_failed:  # Otherwise it was slow, and no outage.
                self._unanswered_s = self._longest_unanswered_s()
            self.unanswered_since_s, self._has_failed = None, False
            self.note_answer()
        else:
            self._has_failed |= bool(known)

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

    def take_unanswered_s(self) -> float:
        """Return the longest time in which no write was answered since the last call of this."""
        longest_s, self._unanswered_s = self._longest_unanswered_s(), 0.0
        return longest_s

    def _longest_unanswered_s(self) -> float:
        since_s = self.unanswered_since_s
        return max(self._unanswered_s, 0.0 if since_s is None else self._clock() - since_s)
