"""An actor: a writer of a store, whose writes the invariants check."""

from dataclasses import dataclass, field

from eventproc.testing._processes import Process


@dataclass(eq=False, slots=True)
class Actor:
    """A writer of the store: a processor, or an operator by hand."""

    name: str
    process: Process | None = None
    """``None`` for an operator."""

    hands_over: bool = False
    """Whether it hands over by itself, so that stealing from it at once is a violation."""

    began_s: float = 0.0
    """When its process began, in virtual seconds."""

    is_foreign: bool = False
    """Whether it is a foreign member, for which only some invariants hold."""

    steal_count: int = 0
    """Steals that it requested since its last poll."""

    claim_count: int = 0
    """Claims and steals that it requested since its last poll."""

    unanswered: set[str] = field(default_factory=set)
    """Partitions of which it does not know whether its newest write was carried out."""

    @property
    def disturbed_at_s(self) -> float:
        """When its process was last resumed after a pause, or its clock last jumped."""
        return float("-inf") if self.process is None else self.process.disturbed_at_s

    @property
    def is_killed(self) -> bool:
        """Whether its process was killed."""
        return self.process is not None and self.process.is_killed

    @property
    def pause_count(self) -> int:
        """How often its process was paused."""
        return 0 if self.process is None else self.process.pause_count
