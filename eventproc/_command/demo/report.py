"""The report of the demo: what happened to each event, and how the group balanced. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass

from rich.table import Table
from rich.text import Text

from eventproc._command.demo.journal import Event
from eventproc._core.placement.even import even_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change in the group, and how long the group took to balance."""

    kind: str
    """``start``, ``join``, ``kill``, ``freeze``, ``thaw`` or ``leave``."""

    processor: str
    """Its name; several are separated by commas."""

    seconds_to_balance: float | None
    """``None`` if the group was not balanced in time. Without the start of Python."""

    moves: int
    """Partitions that have another owner than before."""

    moves_minimum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """What happened to the published events. ``handled`` counts each event once."""

    published: int
    handled: int
    lost: int
    duplicates: int
    """Deliveries of an event after its first one."""

    duplicates_unexplained: int
    """Duplicates among the deliveries to processes that were neither killed nor frozen. A planned
    hand-over should make none."""


def make_accounts(
    published: Collection[Event],
    deliveries: Iterable[tuple[str, Event]],
    abrupt: Collection[str],
) -> Accounts:
    """Compare the events of the hub with those that handlers received.

    Args:
        published: The events of the hub.
        deliveries: Process and event of each delivery.
        abrupt: The processes that were killed or frozen.
    """
    times: Counter[Event] = Counter()
    times_by_others: Counter[Event] = Counter()
    for name, event in deliveries:
        times[event] += 1
        times_by_others[event] += name not in abrupt
    handled = sum(event in times for event in published)
    return Accounts(
        published=len(published),
        handled=handled,
        lost=len(published) - handled,
        duplicates=sum(count - 1 for count in times.values()),
        duplicates_unexplained=sum(max(0, count - 1) for count in times_by_others.values()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of the demo."""

    accounts: Accounts
    changes: Sequence[Change]
    result_matches: bool
    """Whether every figure that the handlers stored is the same as computed from the data."""

    aircraft: int
    partitions: int
    store: str
    seconds: float
    problems: Sequence[str]
    """Other failures, such as a process with a bad exit code."""

    @property
    def is_good(self) -> bool:
        """Whether the demo showed what it promises."""
        return self.accounts.lost == 0 and self.result_matches and not self.problems

    def as_json(self) -> dict[str, object]:
        """The report as JSON, with the accounts at its top."""
        fields: dict[str, object] = asdict(self)
        del fields["accounts"]
        return asdict(self.accounts) | fields

    def as_table(self) -> Table:
        """The accounts and the verdict, for people."""
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("what")
        table.add_column("count", justify="right")
        table.add_column("which means")
        accounts = self.accounts
        meaning = {
            "published": "events that the hub holds",
            "handled": "events that a handler was given",
            "lost": "events that no handler was given",
            "duplicates": "events given a second time; the state counts them once",
            "unexplained": "duplicates that neither the kill nor the freeze caused",
        }
        for count, (name, means) in zip(astuple(accounts), meaning.items(), strict=True):
            style = ("red" if count else "green") if name == "lost" else ""
            table.add_row(name, Text(f"{count:,}", style), means)
        verdict = Text("equal", "green") if self.result_matches else Text("DIFFERENT", "red")
        table.add_row(
            "result",
            verdict,
            f"to the figures of {self.aircraft:,} aircraft straight from the file",
        )
        for problem in self.problems:
            table.add_row("problem", Text("!", "red"), problem)
        return table


def is_balanced(owner_by_partition: Mapping[str, str | None], live: Collection[str]) -> bool:
    """Whether live processors own all partitions, evenly and as the plan says."""
    owners = {p: o for p, o in owner_by_partition.items() if o is not None and o in live}
    if len(owners) < len(owner_by_partition) or not live:
        return False
    return even_plan(list(owners), owners, set(live)) == owners


def fewest_moves(owner_by_partition: Mapping[str, str | None], live: Collection[str]) -> int:
    """Return the fewest partitions that must change owners to balance the ``live`` processors."""
    owners = {p: o for p, o in owner_by_partition.items() if o is not None and o in live}
    planned = even_plan(list(owner_by_partition), owners, set(live))
    return sum(owners.get(p) != owner_id for p, owner_id in planned.items())


def shares(owner_by_partition: Mapping[str, str | None]) -> str:
    """Return how many partitions each owner has: ``A 6, B 5, C 5``."""
    counts = Counter(owner_id or "unowned" for owner_id in owner_by_partition.values())
    return ", ".join(f"{owner_id} {count}" for owner_id, count in sorted(counts.items()))
