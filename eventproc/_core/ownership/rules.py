"""What one processor's decisions depend on besides the records: its names, strategy and times.

``_group/balancer.py`` makes these values from the configuration, which ``_core`` does not know.
"""

from dataclasses import dataclass
from datetime import timedelta

from eventproc._core.placement.placement import MemberFacts, Placement
from eventproc.models import LoadBalancingStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the cycle of one processor depends on. "Me" is that processor."""

    owner_id: str
    strategy: LoadBalancingStrategy
    placement: Placement
    """The one that this processor was given; the group may follow another one."""

    facts: MemberFacts
    """What a placement may know of this processor."""

    expiration: timedelta
    handoff_timeout: timedelta
    standby_timeout: timedelta
    load_balancing_interval: timedelta
    rebalance_interval: timedelta
    patience: timedelta | None = None
    """For how long the plan waits for a member that the roster expects, and that has not come yet;
    ``None`` without a roster."""
