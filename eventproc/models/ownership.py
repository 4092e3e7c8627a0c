"""Groups, ownership records, claims and their outcomes.

A time is an aware ``datetime``, a span a ``timedelta``. A partition id is a string even if it
looks like a number. Every record that was read from a store has the ``etag`` that it had there.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, Self

from eventproc.errors import ConfigurationError, StoreError
from eventproc.models.checkpoint import WriteOutcome
from eventproc.settings import check_settings


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
