"""Member records: one for each processor of a group, with its status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType

from eventproc.errors import StoreError
from eventproc.models.checkpoint import OffsetFormat, WriteOutcome


class MemberStatus(Enum):
    """The status of a processor in its group. The values are stored."""

    ACTIVE = "active"
    """It gets its share of the partitions."""

    STANDBY = "standby"
    """It waits to replace a processor of another deployment, and gets no share until then."""

    LEAVING = "leaving"
    """It gets no share, and releases or hands over what it holds."""

    RESTARTING = "restarting"
    """It stopped and will start again under its owner id; it keeps what it owns until then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member record. It makes a processor known to the group even while it owns nothing.

    Azure SDK processors write none, so it also shows that a processor follows the plan.
    """

    owner_id: str
    incarnation: str
    """A value drawn at each start: tells apart two processors with one ``owner_id``."""

    status: MemberStatus = MemberStatus.ACTIVE
    hands_over: bool = True
    """False if its strategy has no hand-over: other members have to steal from it."""

    weight: float = 1.0
    """Its share relative to other members, if the placement uses weights."""

    capacity: int | None = None
    """The most partitions that it takes, if the placement uses capacities."""

    ordinal: int | None = None
    """Its number in a numbered set of processors."""

    load: str = ""
    """The loads of its partitions, as it measured them: see ``core/placement/loads.py``."""

    placement: str = "Even"
    """The name of the placement that it would follow: see ``agreed`` in ``core/placement``."""

    deployment_id: str = ""
    """The deployment that it belongs to; empty if it was not given."""

    offset_format: OffsetFormat = OffsetFormat.AMQP
    """The offset format of its source. A stored record without one means AMQP."""

    version: str = ""
    """The eventproc version that it runs, for operators."""

    etag: str | None = None
    """As last confirmed by the store; ``None`` for a record that was never written."""

    last_modified: datetime | None = None

    @property
    def is_leaving(self) -> bool:
        """Whether its status is *leaving*."""
        return self.status is MemberStatus.LEAVING


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberResult:
    """The outcome of a conditional write of a member record."""

    outcome: WriteOutcome
    member: Member | None = None
    """The record as stored, with its ETag, if won."""

    error: StoreError | None = None
    """Why the outcome is unknown, if the store reports it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipSnapshot:
    """One listing of a group's member records, with the store's time of the answer."""

    members: tuple[Member, ...]
    as_of: datetime
    resolution: timedelta = timedelta(0)
    record_etags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The ETag of each group record, by its name: so a record is read only after it changed."""
