"""Placements: which processor should have which partition. See ``docs/placement.md``."""

from eventproc._core.placement.by_load import ByLoad
from eventproc._core.placement.clockwise import Circle, Clockwise
from eventproc._core.placement.even import Even
from eventproc._core.placement.loads import Loads
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.placement import GroupState, MemberFacts, Order, Placement
from eventproc._core.placement.published import Published
from eventproc._core.placement.ring import Ring
from eventproc._core.placement.weighted import Weighted

__all__ = [
    "ByLoad",
    "Circle",
    "Clockwise",
    "Even",
    "GroupState",
    "Loads",
    "MemberFacts",
    "Order",
    "Ordinal",
    "Placement",
    "Published",
    "Ring",
    "Weighted",
]
