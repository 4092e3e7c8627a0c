"""Groups: their ownership, member and group records, claims, and the outcomes of writes.

A time is an aware ``datetime``, a span a ``timedelta``. A partition id is a string even if it
looks like a number. Every record that was read from a store has the ``etag`` that it had there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Final, Self

from eventproc._base.settings import check_settings
from eventproc.errors import ConfigurationError, StoreError
from eventproc.models._checkpoint import OffsetFormat, WriteOutcome


class LoadBalancingStrategy(Enum):
    """How a processor carries out its part of the plan. All follow the same plan."""

    BALANCED = "balanced"
    """At most one claim or steal in each cycle."""

    GREEDY = "greedy"
    """All planned partitions without an owner at once; at most one steal in each cycle."""

    COOPERATIVE = "cooperative"
    """As ``GREEDY``, and owners hand over their surplus partitions, without duplicates."""

    RELEASE = "release"
    """As ``COOPERATIVE``, but owners release their surplus, and the planned owners claim it: for
    stores in which an owner cannot write the name of another one."""

    @property
    def lets_go(self) -> bool:
        """Whether an owner hands over or releases what the plan gives to another member."""
        return self in {LoadBalancingStrategy.COOPERATIVE, LoadBalancingStrategy.RELEASE}


class CloseReason(Enum):
    """Why a partition's handler is closed."""

    SHUTDOWN = "shutdown"
    """The processor stops. The progress is checkpointed."""

    HANDED_OVER = "handed_over"
    """The plan gives the partition to another processor. The progress is checkpointed."""

    OWNERSHIP_LOST = "ownership_lost"
    """Another processor has the partition; or an operator moved its checkpoint, and the partition
    is about to begin again from there. ``checkpoint`` raises ``OwnershipLostError`` from now on."""

    HANDLER_FAILED = "handler_failed"
    """The handler could not be created, or failed permanently."""

    SOURCE_FAILED = "source_failed"
    """The event source refuses the partition permanently."""

    STALLED = "stalled"
    """There was work, and none of it was completed within ``failover_timeout``."""


def _refuse_name(kind: str, value: str) -> None:
    """Refuse a name that cannot be part of a record's key."""
    if not value or value != value.strip():
        raise ConfigurationError(
            "give a name without surrounding blanks", setting=kind, value=repr(value)
        )
    if "/" in value or "\\" in value:
        raise ConfigurationError(
            "give a name without a slash, which separates the parts of a key",
            setting=kind,
            value=repr(value),
        )
    if not value.isprintable():
        raise ConfigurationError(
            "give a name of characters that can be printed", setting=kind, value=repr(value)
        )


_RESOURCES: Final = ("eventproc", "resources")
"""What groups of resources have in place of a namespace and a hub."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroup:
    """A consumer group of one event hub. Every stored record belongs to one.

    Event Hubs ignores case in all three names, and so do the stores.
    """

    fully_qualified_namespace: str
    """For example ``contoso.servicebus.windows.net``; for the emulator, its host name."""

    eventhub_name: str
    name: str = "$Default"

    def __post_init__(self) -> None:
        """Refuse names that cannot be part of a record's key."""
        check_settings(self)
        _refuse_name("fully_qualified_namespace", self.fully_qualified_namespace)
        _refuse_name("eventhub_name", self.eventhub_name)
        _refuse_name("consumer group", self.name)

    @classmethod
    def of_resources(cls, name: str) -> Self:
        """Return the group under which a store keeps the records of a group of resources."""
        return cls(fully_qualified_namespace=_RESOURCES[0], eventhub_name=_RESOURCES[1], name=name)

    @property
    def is_of_resources(self) -> bool:
        """Whether the group shares named resources, and not the partitions of a hub."""
        return self.key[:2] == _RESOURCES

    @property
    def key(self) -> tuple[str, str, str]:
        """The three names in lower case: equal for names that mean the same group."""
        return (
            self.fully_qualified_namespace.lower(),
            self.eventhub_name.lower(),
            self.name.lower(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOwnership:
    """The owner of a partition, as stored."""

    partition_id: str
    owner_id: str | None
    """``None`` if the partition is released: any member may claim it, whatever the record's age."""

    etag: str
    last_modified: datetime
    """The time of the last write, on the store's clock."""

    epoch: int = 0
    """The fencing token of the newest claim: see ``OwnershipClaim``. 0: the record has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipClaim:
    """A conditional write: make ``owner_id`` the owner if the record still has ``expected_etag``.

    It is used to claim, renew, steal, hand over and release.
    """

    partition_id: str
    owner_id: str | None
    """The owner to record; ``None`` releases."""

    expected_etag: str | None
    """``None``: only if no record exists yet."""

    epoch: int = 0
    """The fencing token: higher for each new claim of the partition, and unchanged by renewals,
    hand-overs and releases. An outside system that refuses lower ones than it has seen is safe from
    an owner that does not know yet that it lost its lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """The outcome of one claim."""

    claim: OwnershipClaim
    outcome: WriteOutcome
    ownership: PartitionOwnership | None = None
    """The record as stored, if won; if lost, the winner's record, if the store has read it."""

    error: StoreError | None = None
    """Why the outcome is unknown, if the store reports it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipSnapshot:
    """One listing of a group's ownership records, with the store's time of the answer."""

    ownerships: tuple[PartitionOwnership, ...]
    as_of: datetime
    """The time of the answer, by the clock that also set ``last_modified`` of the records."""

    resolution: timedelta = timedelta(0)
    """The precision of the store's times: one second if they are HTTP dates."""

    @property
    def by_partition(self) -> dict[str, PartitionOwnership]:
        """The records by partition id."""
        return {ownership.partition_id: ownership for ownership in self.ownerships}


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
    """The loads of its partitions, as it measured them: see ``_core/placement/loads.py``."""

    placement: str = "Even"
    """The name of the placement that it would follow: see ``agreed`` in ``_core/placement``."""

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


RECORD_BYTES_MAX: Final = 4 * 1024 * 1024
"""Largest content of a group record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """A named value that all processors of a group read, and one of them writes.

    It is stored apart from ownership, checkpoints and members, so no Azure SDK reads it.
    """

    name: str
    content: bytes
    etag: str | None = None
    """As last confirmed by the store; ``None`` for a record that was never written."""

    def __post_init__(self) -> None:
        """Check that every store can keep the record.

        Raises:
            ConfigurationError: the name is empty, or the content is too large.
        """
        if not self.name:
            raise ConfigurationError("the name of a group record is empty: give it one")
        if len(self.content) > RECORD_BYTES_MAX:
            raise ConfigurationError(
                f"the group record {self.name!r} has {len(self.content):,} bytes: the most is "
                f"{RECORD_BYTES_MAX:,}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordResult:
    """The outcome of a conditional write of a group record."""

    outcome: WriteOutcome
    record: GroupRecord | None = None
    """The record as stored, with its ETag, if won."""

    error: StoreError | None = None
    """Why the outcome is unknown, if the store reports it."""
