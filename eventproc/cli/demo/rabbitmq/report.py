"""The report of ``eventproc demo-rabbitmq``."""

from dataclasses import asdict, dataclass

from eventproc.cli.demo.rabbitmq.accounts import Accounts
from eventproc.cli.demo.rabbitmq.scene import Step


@dataclass(frozen=True, kw_only=True)
class Report:
    """The results of the demo."""

    accounts: Accounts
    steps: tuple[Step, ...]
    queue_count: int
    api_request_count: int
    seconds: float
    store: str
    problems: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Whether the demo showed what it promises."""
        found = self.accounts
        return not (
            found.lost
            or found.out_of_order
            or found.duplicates_unexplained
            or found.overlaps_unexplained
            or self.problems
        )

    def as_json(self) -> dict[str, object]:
        """Return the report as JSON."""
        return {
            **asdict(self.accounts),
            "queues": self.queue_count,
            "steps": [
                {"what": step.what, "moves": step.moves, "seconds": _tenths(step.seconds)}
                for step in self.steps
            ],
            "api_requests": self.api_request_count,
            "seconds": round(self.seconds, 1),
            "store": self.store,
            "problems": list(self.problems),
        }


def _tenths(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
