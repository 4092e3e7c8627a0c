"""The faults that are active, and until when.

Rule: this module only stores them. Connections and links query it at the points where the service
could fail, so an emulator without faults pays for one look-up.
"""

import time
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from eventproc.emulator._amqp.refusal import offset_before_replication, server_busy
from eventproc.emulator._hub.log import PositionKind, StartPosition

MonotonicSeconds = float


class LastingFault(StrEnum):
    """A fault with a duration; the value is its name at the control endpoint."""

    REFUSE_CONNECTIONS = "refuse-connections"
    """Abort every new connection as soon as it is made."""

    REFUSE_LINKS = "refuse-links"
    """Answer every new link to a hub with the service's ``server-busy``."""

    REFUSE_OFFSETS = "refuse-offsets"
    """Refuse receivers that begin at an offset, as after geo-replication was switched on."""

    BE_BUSY = "be-busy"
    """Reject every event that is sent to a hub with the service's ``server-busy``."""

    FALL_SILENT = "fall-silent"
    """Keep connections open but send nothing on them; pending output follows afterwards."""


@dataclass(slots=True)
class Faults:
    """The faults of one emulator. Each lasts for its duration, or until ``clear``."""

    _until: dict[LastingFault, MonotonicSeconds] = field(default_factory=dict)
    _delays: dict[tuple[str, str], timedelta] = field(default_factory=dict)

    def begin(self, fault: LastingFault, duration: timedelta) -> None:
        """Begin a fault, or change when it ends."""
        self._until[fault] = time.monotonic() + duration.total_seconds()

    def delay_deliveries(
        self, delay: timedelta, hub: str | None = None, partition_id: str | None = None
    ) -> None:
        """Delay each delivery of one partition, of one hub, or of all. Zero ends it."""
        target = ((hub or "").casefold(), partition_id or "")
        if delay > timedelta(0):
            self._delays[target] = delay
        else:
            self._delays.pop(target, None)

    def clear(self) -> None:
        """End every fault."""
        self._until.clear()
        self._delays.clear()

    # --- queries of connections and links --------------------------------------------------------

    def refuses_connections(self) -> bool:
        """Whether to abort a new connection."""
        return self._left_s(LastingFault.REFUSE_CONNECTIONS) > 0

    def check_link(self) -> None:
        """Raise ``RefusedError`` if new links are refused now."""
        if self._left_s(LastingFault.REFUSE_LINKS) > 0:
            raise server_busy()

    def check_position(self, position: StartPosition) -> None:
        """Raise ``RefusedError`` if receivers that begin at this position are refused now."""
        is_offset = position.kind is PositionKind.OFFSET and position.value >= 0
        if is_offset and self._left_s(LastingFault.REFUSE_OFFSETS) > 0:
            raise offset_before_replication(position.value)

    def check_send(self) -> None:
        """Raise ``RefusedError`` if events are rejected now."""
        if self._left_s(LastingFault.BE_BUSY) > 0:
            raise server_busy()

    def silence_s(self) -> float:
        """Seconds for which nothing may be written; 0 without the fault."""
        return max(0.0, self._left_s(LastingFault.FALL_SILENT))

    def _left_s(self, fault: LastingFault) -> float:
        until = self._until.get(fault)
        return 0.0 if until is None else until - time.monotonic()

    def delivery_delay_s(self, hub: str, partition_id: str) -> float:
        """Seconds by which to delay a delivery from this partition."""
        if not self._delays:
            return 0.0
        hub = hub.casefold()
        targets = ((hub, partition_id), (hub, ""), ("", ""))
        delays = [self._delays[target] for target in targets if target in self._delays]
        return delays[0].total_seconds() if delays else 0.0
