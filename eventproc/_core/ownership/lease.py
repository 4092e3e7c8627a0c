"""How long does an owner trust its lease, and when does it renew it?

Rule 1: an owner counts the expiration from *before it sent* the last confirmed write, and stops
trusting its lease some time before the end. The others count from when the store made that write,
which is later. So the offset of the clocks does not matter, only how fast they run.
Rule 2: a listing that contradicts a lease is a hint; only a conditional write proves who owns it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from eventproc.models import OwnershipSnapshot, PartitionOwnership

TRUST_FRACTION: Final = 0.9
"""The part of the expiration for which an owner trusts its lease: so its own clock may run 5 % slow
and the store's 5 % fast."""

RENEWALS_PER_EXPIRATION: Final = 3
"""A record is renewed at a third of the expiration, so that two renewals in a row may fail."""

CHECKS_PER_EXPIRATION: Final = 24
"""How often in an expiration to look for what is due: often enough to retry a failed renewal."""


FOREIGN_EXPIRATION: Final = timedelta(seconds=60)
"""The shortest expiration of the Azure SDKs' processors by default: of JavaScript, Go and Java."""

FOREIGN_DUE_PART: Final = (RENEWALS_PER_EXPIRATION / CHECKS_PER_EXPIRATION) * 1.25
"""Before such processors a record is renewed this part sooner, so that with the time until the next
check it is never older than a third of their expiration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A partition that this processor owns."""

    partition_id: str
    etag: str
    sent_at_s: float
    """When the last confirmed write was sent, on this processor's own clock."""

    answered_at_s: float
    """When its answer came: a listing requested after this must show the write."""

    epoch: int = 0
    """The fencing token of the claim that began this lease."""

    is_doubtful: bool = False
    """A later write has an unknown outcome, so ``etag`` may be out of date."""

    def is_contradicted(
        self, me: str, stored: PartitionOwnership | None, asked_at_s: float
    ) -> bool:
        """Whether a listing that was requested at *asked_at_s* shows another record.

        A record that names us but has another ETag was changed by an operator, to restart the
        partition; or by our own write of unknown outcome, if the lease is doubtful.
        """
        if self.answered_at_s > asked_at_s:
            return False
        if stored is None or stored.owner_id != me:
            return True
        return not self.is_doubtful and stored.etag != self.etag


def next_epoch(stored: PartitionOwnership | None, as_of: datetime) -> int:
    """Return the fencing token of a new claim: above that of every earlier claim.

    It is at least the store's time in milliseconds, because the record with the former token may be
    gone: deleted, or overwritten by a processor of an Azure SDK, which keeps no token.
    """
    now_ms = int(as_of.timestamp() * 1000)
    return now_ms if stored is None else max(stored.epoch + 1, now_ms)


def trusted_until_s(sent_at_s: float, expiration: timedelta) -> float:
    """Return until when to trust a lease whose last confirmed write was sent at ``sent_at_s``."""
    return sent_at_s + expiration.total_seconds() * TRUST_FRACTION


def renewal_due_at_s(sent_at_s: float, expiration: timedelta) -> float:
    """When to renew a lease whose last confirmed write was sent at ``sent_at_s``."""
    return sent_at_s + expiration.total_seconds() / RENEWALS_PER_EXPIRATION


def check_pause_s(expiration: timedelta) -> float:
    """Return the time between two checks of what is due."""
    return min(expiration, FOREIGN_EXPIRATION).total_seconds() / CHECKS_PER_EXPIRATION


def due_leases(
    leases: Iterable[Lease], expiration: timedelta, now_s: float, *, has_foreign: bool = False
) -> tuple[Lease, ...]:
    """Return the leases whose records have to be renewed now.

    *has_foreign*: processors of an Azure SDK may have a shorter expiration than this one.
    """
    if has_foreign:
        expiration = min(expiration, FOREIGN_EXPIRATION * (1 - FOREIGN_DUE_PART))
    return tuple(
        lease for lease in leases if renewal_due_at_s(lease.sent_at_s, expiration) <= now_s
    )


def contradicted(
    leases: Iterable[Lease], me: str, owned: OwnershipSnapshot, asked_at_s: float
) -> tuple[Lease, ...]:
    """Return the leases that a listing requested at *asked_at_s* contradicts."""
    stored = owned.by_partition
    return tuple(
        lease
        for lease in leases
        if lease.is_contradicted(me, stored.get(lease.partition_id), asked_at_s)
    )
