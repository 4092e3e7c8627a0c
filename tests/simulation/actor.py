"""Who writes into a store, and is held to what it promised."""

from dataclasses import dataclass

from eventproc.testing.processes import Process


@dataclass(eq=False, slots=True)
class Actor:
    """Whoever writes into the store: a processor, or by hand an operator."""

    name: str
    process: Process | None = None
    """``None`` for an operator."""

    hands_over: bool = False
    """Whether it gives away what the plan takes from it, and so may not be robbed at once."""

    is_foreign: bool = False
    """Whether it is another vendor's, and keeps that one's promises only."""

    steal_count: int = 0
    """Steals that it asked for since it last looked at the group."""

    claim_count: int = 0
    """What it asked for since then that was not its own already."""

    @property
    def disturbed_at_s(self) -> float:
        """When its process last ran on after it stood still, or its clock jumped."""
        return float("-inf") if self.process is None else self.process.disturbed_at_s

    @property
    def is_killed(self) -> bool:
        """Whether it can do nothing any more."""
        return self.process is not None and self.process.is_killed

    @property
    def pause_count(self) -> int:
        """How often it was paused."""
        return 0 if self.process is None else self.process.pause_count
