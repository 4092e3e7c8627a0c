"""The report of ``eventproc demo``: what happened to each event, and how the group balanced."""

from dataclasses import dataclass

from eventproc.cli.demo.flights import Logbook
from eventproc.cli.demo.journal import Accounts
from eventproc.cli.demo.processors.scene import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of the demo."""

    accounts: Accounts
    duplicates_unexplained: int
    """Duplicates among the deliveries to processes that were neither killed nor frozen. A planned
    hand-over should make none."""

    handovers: int
    """Partitions that one live processor handed over to another."""

    changes: tuple[Change, ...]
    logbook: Logbook
    """From the handlers' stored state."""

    truth: Logbook
    """Computed directly from the data."""

    seconds: float
    store: str
    partition_count: int
    problems: tuple[str, ...] = ()
    """Other failures, such as a processor with a bad exit code or a group that did not balance."""

    @property
    def result_matches(self) -> bool:
        """Whether every figure of every aircraft is the same."""
        return self.logbook.figures_by_aircraft == self.truth.figures_by_aircraft

    @property
    def is_good(self) -> bool:
        """Whether the demo showed what it promises."""
        return self.accounts.lost == 0 and self.result_matches and not self.problems

    def as_json(self) -> dict[str, object]:
        """The report as JSON."""
        return {
            "published": self.accounts.published,
            "handled": self.accounts.handled,
            "duplicates": self.accounts.duplicates,
            "duplicates_unexplained": self.duplicates_unexplained,
            "lost": self.accounts.lost,
            "handovers": self.handovers,
            "result_matches": self.result_matches,
            "seconds": round(self.seconds, 1),
            "changes": [
                {
                    "kind": change.kind.value,
                    "processor": change.processors,
                    "seconds_to_balance": change.seconds_to_balance,
                    "moves": change.moves,
                    "moves_minimum": change.moves_minimum,
                }
                for change in self.changes
            ],
            "store": self.store,
            "partitions": self.partition_count,
            "aircraft": len(self.logbook.figures_by_aircraft),
            "problems": list(self.problems),
        }
