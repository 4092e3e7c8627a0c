"""The records that tell who is there: presence, and what a processor says of its part.

Frozen values, as those of ``models``.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from eventproc.models import Numbering, WriteOutcome


class MemberStatus(Enum):
    """What a processor says of its part in the group."""

    ACTIVE = "active"
    """It takes its share."""

    RESERVE = "reserve"
    """It waits to replace a processor of another generation, and takes no share until then."""

    LEAVING = "leaving"
    """The plan gives it nothing, and it lets go of what it has."""

    AWAY = "away"
    """It stopped in good order and comes back under its id; it keeps what it owns until then."""

    DEAD = "dead"
    """Another processor found it silent for an expiration. What it owned is free."""


class LeaseMode(Enum):
    """What keeps an ownership alive."""

    PARTITION = "partition"
    """Each ownership record is renewed by itself, as all Azure SDKs do it."""

    SESSION = "session"
    """The owner's presence record is renewed, one write for all that it owns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A processor's presence in the group: it exists, even while it owns nothing.

    A presence record is also the sign of a processor that hands partitions over: a processor of
    another SDK writes none.
    """

    owner_id: str
    incarnation: str
    """Drawn anew at each start: tells two processors apart that were given one ``owner_id``."""

    status: MemberStatus = MemberStatus.ACTIVE
    hands_over: bool = True
    """False for a strategy without hand-over: others have to steal from it."""

    weight: float = 1.0
    """Reserved for weighted plans; every processor counts the same today."""

    generation: str = ""
    """Which deployment it belongs to; empty where nobody said."""

    lease_mode: LeaseMode = LeaseMode.PARTITION
    numbering: Numbering = Numbering.AMQP
    """Of its source. A record without it is of a processor that knows AMQP only."""

    version: str = ""
    """The eventproc version it runs, for people who look."""

    etag: str | None = None
    """As last confirmed by the store; ``None`` for one that was never written."""

    last_modified: datetime | None = None

    @property
    def is_leaving(self) -> bool:
        """Whether it said that it goes."""
        return self.status is MemberStatus.LEAVING


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberResult:
    """What became of a conditional write of a presence record."""

    outcome: WriteOutcome
    member: Member | None = None
    """The record as stored, with its etag, when won."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipSnapshot:
    """One answer to "who is there": presence records and the time at which they were read."""

    members: tuple[Member, ...]
    as_of: datetime | None
    resolution: timedelta = timedelta(0)
