"""What one cycle of a processor read of its group."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from eventproc.core.ownership.lease import Lease
from eventproc.core.ownership.liveness import is_fresh
from eventproc.core.ownership.members.status import OwnRecord
from eventproc.core.placement.schema import StoredSchema
from eventproc.models import MembershipSnapshot, OwnershipSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What one cycle read, and what this processor had at that moment."""

    partition_ids: tuple[str, ...]
    present: MembershipSnapshot
    owned: OwnershipSnapshot | None
    """``None``: not read, because nothing can have changed (``needs_ownership``)."""

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

    def shows_new_process(self, before: "Listing | None") -> bool:
        """Whether an owner id has another incarnation than in the listing before."""
        known = {m.owner_id: m.incarnation for m in before.present.members} if before else {}
        return any(
            known.get(m.owner_id, m.incarnation) != m.incarnation for m in self.present.members
        )

    def signature(self, expiration: timedelta) -> Hashable:
        """Return a value that differs if the ownership records may have changed."""
        members = frozenset(
            (m.owner_id, m.incarnation, m.status, is_fresh(m, self.present, expiration))
            for m in self.present.members
        )
        schema = self.schema and self.schema.etag
        return self.partition_ids, self.held, members, schema, self.expected
