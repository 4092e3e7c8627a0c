"""The demo's last word: what became of every event, and how fast the group found its balance."""

from dataclasses import dataclass

from eventproc.cli.demo.flights import Logbook
from eventproc.cli.demo.journal import Accounts
from eventproc.cli.demo.scene import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the demo found."""

    accounts: Accounts
    duplicates_unexplained: int
    """Of the duplicates, those in which no process that was killed or frozen had a part: a planned
    hand-over should make none."""

    handovers: int
    """Partitions that went from one living processor to another, drained and checkpointed."""

    changes: tuple[Change, ...]
    logbook: Logbook
    """From the handlers' stored state."""

    truth: Logbook
    """Computed directly from the data."""

    seconds: float
    store: str
    partition_count: int
    problems: tuple[str, ...] = ()
    """Whatever else went wrong: a processor that did not end well, a group out of balance."""

    @property
    def result_matches(self) -> bool:
        """Whether every figure of every aircraft is the same."""
        return self.logbook.figures_by_aircraft == self.truth.figures_by_aircraft

    @property
    def is_good(self) -> bool:
        """Whether the demo showed what it promises."""
        return self.accounts.lost == 0 and self.result_matches and not self.problems

    def as_json(self) -> dict[str, object]:
        """The report for a program."""
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
                    "processor": change.who,
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
