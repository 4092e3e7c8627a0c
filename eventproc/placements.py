"""Placements: which processor should have which partition. See ``docs/placement.md``."""

from eventproc.core.placement.clockwise import Circle, Clockwise
from eventproc.core.placement.even import Even
from eventproc.core.placement.ordinal import Ordinal
from eventproc.core.placement.placement import Order, Placement
from eventproc.core.placement.published import Published
from eventproc.core.placement.ring import Ring
from eventproc.core.placement.state import GroupState, MemberFacts
from eventproc.core.placement.weighted import Weighted

__all__ = [
    "Circle",
    "Clockwise",
    "Even",
    "GroupState",
    "MemberFacts",
    "Order",
    "Ordinal",
    "Placement",
    "Published",
    "Ring",
    "Weighted",
]
