"""Statistics of a fleet, and the reports from which the driver computes them. Pure.

Reports are sent as JSON. Each one is complete and the newest one counts, so lost, late and repeated
reports do no harm.
"""

import hmac
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from msgspec import ValidationError, convert

from eventproc._base.bounded_json import read_json
from eventproc.errors import EventProcError
from eventproc.models._statistics import ProcessorStatistics


class FleetError(EventProcError):
    """A fleet could not start, ended by itself, or did not stop gracefully."""

    __module__ = "spark_integration"


class Phase(StrEnum):
    """The state of a member."""

    __module__ = "spark_integration"

    WAITING = "waiting"
    """Spark has not started its task yet, or is about to restart it."""

    STARTING = "starting"
    SERVING = "serving"
    STOPPING = "stopping"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A task's report about its processor."""

    slot: int
    incarnation: str
    """A random value of each task attempt. A new value in the same slot means a restart."""

    host: str
    process_id: int
    phase: Phase
    statistics: ProcessorStatistics | None = None
    age_seconds: float = 0.0
    """The age of these statistics. They are not updated while a handler blocks the event loop."""

    warnings: tuple[str, ...] = ()
    """Warnings and errors logged since the last report that the driver answered."""

    error: str | None = None
    """The error that ended the processor, if there was one."""

    is_permanent: bool = False
    """Whether every restart would fail with the same error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMember:
    """The driver's view of one processor of a fleet."""

    __module__ = "spark_integration"

    slot: int
    owner_id: str
    """The processor's owner id, the same after every restart."""

    phase: Phase
    host: str | None
    process_id: int | None
    restart_count: int
    silent_seconds: float | None
    """Time since its newest statistics were taken; ``None`` before the first report."""

    statistics: ProcessorStatistics | None
    """The processor's own statistics. Counts start at 0 with each restart."""

    error: str | None
    """The error that ended the last incarnation, if there was one."""

    is_live: bool
    """Whether it serves and has reported recently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatistics:
    """Statistics of a fleet. ``str()`` gives a one-line summary."""

    __module__ = "spark_integration"

    name: str
    members: tuple[FleetMember, ...]
    handled_count: int
    """Events that all incarnations of all members have reported as handled."""

    warnings: tuple[str, ...]
    """The newest warnings and errors of all members, oldest first."""

    @property
    def live_count(self) -> int:
        """How many members are live."""
        return sum(member.is_live for member in self.members)

    @property
    def restart_count(self) -> int:
        """How often members were restarted, in total."""
        return sum(member.restart_count for member in self.members)

    @property
    def owned_count(self) -> int:
        """How many partitions the live members own together."""
        return sum(
            len(member.statistics.owned)
            for member in self.members
            if member.is_live and member.statistics is not None
        )

    @property
    def lag(self) -> int | None:
        """Events not yet handled; ``None`` if a member is not live or its lag is unknown."""
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
    """Encode a report as one line: the token, a blank, and the report as JSON."""
    text = json.dumps(asdict(report), default=datetime.isoformat)
    return b"%b %b\n" % (token.encode(), text.encode())


def decode(line: bytes, token: str) -> Report:
    """Decode a line into a report.

    Raises:
        ValueError: it is not a report, or not from a member of this fleet.
    """
    given, _, text = line.partition(b" ")
    if not hmac.compare_digest(given, token.encode()):
        raise ValueError("its token is not that of this fleet")
    try:
        return convert(read_json(text), Report)
    except ValidationError as error:
        raise ValueError(f"not a report: {error}") from error


def has_token(line: bytes, token: str) -> bool:
    """Whether a line begins with the token. What follows is not looked at."""
    expected = token.encode()
    return hmac.compare_digest(line[: len(expected)], expected)
