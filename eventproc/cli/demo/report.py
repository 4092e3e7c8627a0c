"""What the reports of both demos have in common."""

from dataclasses import asdict, dataclass

from eventproc.cli.demo.flights import Logbook
from eventproc.cli.demo.journal import Accounts


@dataclass(frozen=True, kw_only=True)
class DemoReport:
    """The results of a demo."""

    accounts: Accounts
    logbook: Logbook
    """From the handlers' stored state."""

    truth: Logbook
    """Computed directly from the data."""

    partition_count: int
    seconds: float
    store: str
    problems: tuple[str, ...] = ()
    """Other failures, such as a process with a bad exit code."""

    @property
    def state_matches(self) -> bool:
        """Whether every figure of every aircraft is the same."""
        return self.logbook.figures_by_aircraft == self.truth.figures_by_aircraft

    @property
    def is_good(self) -> bool:
        """Whether the demo showed what it promises."""
        return self.accounts.lost == 0 and self.state_matches and not self.problems

    def as_json(self) -> dict[str, object]:
        """The report as JSON."""
        return {
            **asdict(self.accounts),
            "aircraft": len(self.logbook.figures_by_aircraft),
            "partitions": self.partition_count,
            "seconds": round(self.seconds, 1),
            "store": self.store,
            "problems": list(self.problems),
        }
