"""How a fleet does: snapshots for the driver's program, and what travels between it and a task.

Pure: values, and their way through JSON. A report is whole in itself and the newest one counts, so
one that is lost, late or repeated does no harm.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from eventproc.errors import EventProcError
from eventproc.statistics import ProcessorStatistics, PumpStatistics, Tally


class FleetError(EventProcError):
    """A fleet could not start, ended by itself, or did not stop in good order."""


class Phase(StrEnum):
    """Where a member is in its life."""

    WAITING = "waiting"
    """Spark has not placed it, or it was lost and Spark is about to place it again."""

    STARTING = "starting"
    SERVING = "serving"
    STOPPING = "stopping"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a task says of its processor."""

    slot: int
    incarnation: str
    """Drawn by each task attempt: a new one in the same slot is a restart."""

    host: str
    process_id: int
    phase: Phase
    statistics: ProcessorStatistics | None = None
    age_seconds: float = 0.0
    """Of these statistics: a handler that blocks the event loop lets none be taken."""

    warnings: tuple[str, ...] = ()
    """What was logged as a warning or an error since the last report that was answered."""

    error: str | None = None
    """What ended it, if an error did."""

    is_hopeless: bool = False
    """Whether it would end in the same way each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMember:
    """How one processor of a fleet does, as far as the driver knows."""

    slot: int
    owner_id: str
    """Its name in the group, the same over all restarts."""

    phase: Phase
    host: str | None
    process_id: int | None
    restart_count: int
    silent_seconds: float | None
    """Since its newest statistics; ``None`` before the first report."""

    statistics: ProcessorStatistics | None
    """Counts begin anew with each restart."""

    error: str | None
    """What ended its last incarnation, if an error did."""

    is_live: bool
    """It serves, and reported lately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatistics:
    """How a fleet does. As text it is one line, to be shown while it runs."""

    name: str
    members: tuple[FleetMember, ...]
    handled_count: int
    """Events that handlers took, of all incarnations, as far as they were reported."""

    warnings: tuple[str, ...]
    """The newest warnings and errors of all members, oldest first."""

    @property
    def live_count(self) -> int:
        """How many members serve now."""
        return sum(member.is_live for member in self.members)

    @property
    def restart_count(self) -> int:
        """How often a member had to be started again."""
        return sum(member.restart_count for member in self.members)

    @property
    def owned_count(self) -> int:
        """How many partitions the live members own."""
        return sum(
            len(member.statistics.owned)
            for member in self.members
            if member.is_live and member.statistics is not None
        )

    @property
    def lag(self) -> int | None:
        """Events not handled yet in the partitions of live members; ``None`` if one is silent."""
        lags = [
            member.statistics.lag if member.is_live and member.statistics is not None else None
            for member in self.members
        ]
        return None if None in lags else sum(lag for lag in lags if lag is not None)

    def __str__(self) -> str:
        lag = "unknown" if self.lag is None else str(self.lag)
        return (
            f"fleet {self.name}: {self.live_count} of {len(self.members)} processors live, "
            f"{self.owned_count} partitions, {self.handled_count} events handled, lag {lag}, "
            f"{self.restart_count} restarts"
        )


def encode(report: Report, token: str) -> bytes:
    """Return a report as a line."""
    return json.dumps({"token": token, **asdict(report)}).encode() + b"\n"


def decode(line: bytes, token: str) -> Report:
    """Return the report in a line.

    Raises:
        ValueError: it is none, or not from a member of this fleet.
    """
    try:
        fields = json.loads(line)
        given = fields.pop("token")
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise ValueError("a stranger's report")
        fields["phase"] = Phase(fields["phase"])
        fields["warnings"] = tuple(fields["warnings"])
        if fields["statistics"] is not None:
            fields["statistics"] = _statistics(fields["statistics"])
        return Report(**fields)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no report: {error}") from error


def _statistics(fields: Mapping[str, Any]) -> ProcessorStatistics:
    pumps = (
        PumpStatistics(**{**pump, "tally": Tally(**pump["tally"])}) for pump in fields["pumps"]
    )
    return ProcessorStatistics(
        **{
            **fields,
            "owned": tuple(fields["owned"]),
            "stopped": tuple(fields["stopped"]),
            "pumps": tuple(pumps),
            "tally": Tally(**fields["tally"]),
        }
    )
