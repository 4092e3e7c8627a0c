"""What one cycle of a processor read of its group."""

from collections.abc import Mapping
from dataclasses import dataclass

from eventproc.core.ownership.lease import Lease
from eventproc.core.ownership.members.status import OwnRecord
from eventproc.core.placement.schema import StoredSchema
from eventproc.models import MembershipSnapshot, OwnershipSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What one cycle read, and what this processor had at that moment."""

    partition_ids: tuple[str, ...]
    present: MembershipSnapshot
    owned: OwnershipSnapshot
    schema: StoredSchema | None = None
    """``None``: not read, because the group publishes no plan, or it could not be read."""

    expected: frozenset[str] | None = None
    """The members that the roster names; ``None`` if this processor has not read it."""

    asked_at_s: float
    """When the first of these was requested."""

    own: OwnRecord
    leases: Mapping[str, Lease]
    is_trusted: bool
    """Whether any lease may be trusted now."""

    handing_over: frozenset[str] = frozenset()
    """Partitions that are being handed over; they count as held until that is done."""

    running: frozenset[str] = frozenset()
    """Partitions whose handler may still run, even if the lease is lost."""

    @property
    def held(self) -> frozenset[str]:
        """The partitions that count as this processor's own, whatever the listing says."""
        return self.handing_over.union(self.leases)
