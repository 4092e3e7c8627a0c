"""Since when the store has answered no write of this processor to the group's records."""

from collections.abc import Iterable

from eventproc.models import WriteOutcome


class Unanswered:
    """Notes writes to member and ownership records, and their outcomes."""

    def __init__(self) -> None:
        self.since_s: float | None = None
        """When the first write was sent since the last answer; ``None``: the last was answered."""

    def note_sent(self, sent_at_s: float) -> None:
        """Note that a write is under way."""
        if self.since_s is None:
            self.since_s = sent_at_s

    def note_outcomes(self, outcomes: Iterable[WriteOutcome]) -> None:
        """Note what came of it; a refused condition is an answer, too."""
        if any(outcome is not WriteOutcome.UNKNOWN for outcome in outcomes):
            self.since_s = None
