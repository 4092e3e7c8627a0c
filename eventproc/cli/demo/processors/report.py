"""The report of ``eventproc demo``: what happened to each event, and how the group balanced."""

from dataclasses import dataclass

from eventproc.cli.demo.processors.scene import Change
from eventproc.cli.demo.report import DemoReport


@dataclass(frozen=True, kw_only=True)
class Report(DemoReport):
    """The results of the demo."""

    duplicates_unexplained: int
    """Duplicates among the deliveries to processes that were neither killed nor frozen. A planned
    hand-over should make none."""

    handovers: int
    """Partitions that one live processor handed over to another."""

    changes: tuple[Change, ...]

    def as_json(self) -> dict[str, object]:
        """The report as JSON."""
        return super().as_json() | {
            "duplicates_unexplained": self.duplicates_unexplained,
            "handovers": self.handovers,
            "result_matches": self.state_matches,
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
        }
