"""For how long a name may be closed: what ``docs/resources.md`` promises, in seconds.

These are the times of the protocol. The handler's own time to close and open, and the time of the
store's answers, come on top; they are measured.

What happens after a crash, and when at the latest:

1. The process crashes. It wrote its last record at that moment.
2. After ``expired_s`` the record counts as expired for everybody who reads it: its owner is dead.
3. At most one interval later the next holder reads that. To it, the membership has changed.
4. One rebalance interval later it reads the same again, and claims the name. While every reading
   shows another membership, this wait lasts ``UNSTABLE_CYCLES_MAX`` rebalance intervals more.

If the next holder has read nothing for half an expiration when it comes to 3, nobody is dead to it
for ``GRACE_INTERVALS`` intervals more: whoever lives may not have been able to renew either. The
reading that shows the change is the first one after that, so it comes up to one interval later.

What happens in a planned change: the next holder reads within one rebalance interval that the name
was handed to it. If another process has joined or left meanwhile, the name may be planned for a
third one. Then it is handed on when the membership is stable (as in 4), and the third one reads
that within one rebalance interval.
"""

from dataclasses import dataclass
from typing import Final

from eventproc._core.ownership.memory import GRACE_INTERVALS, OUTAGE_EXPIRATION_FRACTION
from eventproc._core.ownership.stability import UNSTABLE_CYCLES_MAX
from eventproc._runtime.cycles import JITTER
from tests.integration.resources.fence import EXPIRATION, INTERVAL, REBALANCE

BLOB_TIMES_S: Final = 2.0
"""By how much later a record in blob storage may count as expired: its times are whole seconds."""

AWAKE_S: Final = 1.0
"""For how long after a wake a former holder may go on sending at most."""

OUTAGE_S: Final = OUTAGE_EXPIRATION_FRACTION * EXPIRATION.total_seconds() * 0.85
"""A process that could not read for so long gives the others time to renew, before it takes
anything. Less than that: it measures the time between two readings when its event loop comes to
them, on a busy machine a tenth of a second after the answers."""

_INTERVAL_S: Final = INTERVAL.total_seconds() * (1 + JITTER)
_REBALANCE_S: Final = REBALANCE.total_seconds() * (1 + JITTER)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a group, by its kind of store."""

    is_on_blobs: bool

    @property
    def planned_s(self) -> float:
        """In a planned change: two rebalance intervals."""
        return 2 * REBALANCE.total_seconds()

    @property
    def passed_on_s(self) -> float:
        """In a planned change while others come and go: what is handed over may be passed on."""
        return (1 + (UNSTABLE_CYCLES_MAX + 1) + 1) * _REBALANCE_S

    @property
    def expired_s(self) -> float:
        """After this, every member that looks finds that a silent one is dead."""
        return EXPIRATION.total_seconds() + (BLOB_TIMES_S if self.is_on_blobs else 0.0)

    @property
    def crash_s(self) -> float:
        """After a crash: expiration, one interval, and one rebalance interval."""
        return self.expired_s + _INTERVAL_S + _REBALANCE_S

    @property
    def crowded_s(self) -> float:
        """The same if members come and go meanwhile: the wait for a stable membership is longer."""
        return self.expired_s + _INTERVAL_S + (UNSTABLE_CYCLES_MAX + 1) * _REBALANCE_S

    @property
    def outage_s(self) -> float:
        """The same if the next holder had no answers of the store for a while."""
        return self.crowded_s + GRACE_INTERVALS * INTERVAL.total_seconds() + _INTERVAL_S
