"""The faults that are active, and until when.

Rule: this module only stores them. Connections and links query it at the points where the service
could fail, so an emulator without faults pays for one comparison.
"""

import time
from dataclasses import dataclass, field
from datetime import timedelta

from eventproc.emulator.amqp.refusal import offset_before_replication, server_busy
from eventproc.emulator.hub.position import PositionKind, StartPosition

MonotonicSeconds = float


@dataclass(slots=True)
class Faults:
    """The faults of one emulator. Each lasts for its duration, or until ``clear``."""

    _refuse_connections_until: MonotonicSeconds = 0.0
    _refuse_links_until: MonotonicSeconds = 0.0
    _busy_until: MonotonicSeconds = 0.0
    _silent_until: MonotonicSeconds = 0.0
    _refuse_offsets_until: MonotonicSeconds = 0.0
    _delays: dict[tuple[str, str], timedelta] = field(default_factory=dict)

    def refuse_connections(self, duration: timedelta) -> None:
        """Abort every new connection as soon as it is made."""
        self._refuse_connections_until = _later(duration)

    def refuse_links(self, duration: timedelta) -> None:
        """Answer every new link to a hub with the service's ``server-busy``."""
        self._refuse_links_until = _later(duration)

    def refuse_offsets(self, duration: timedelta) -> None:
        """Refuse receivers that begin at an offset, as after geo-replication was switched on."""
        self._refuse_offsets_until = _later(duration)

    def be_busy(self, duration: timedelta) -> None:
        """Reject every event that is sent to a hub with the service's ``server-busy``."""
        self._busy_until = _later(duration)

    def fall_silent(self, duration: timedelta) -> None:
        """Keep connections open but send nothing on them; pending output follows afterwards."""
        self._silent_until = _later(duration)

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
        self._refuse_connections_until = self._refuse_links_until = 0.0
        self._busy_until = self._silent_until = self._refuse_offsets_until = 0.0
        self._delays.clear()

    # --- queries of connections and links --------------------------------------------------------

    def refuses_connections(self) -> bool:
        """Whether to abort a new connection."""
        return self._refuse_connections_until > time.monotonic()

    def check_link(self) -> None:
        """Raise ``RefusedError`` if new links are refused now."""
        if self._refuse_links_until > time.monotonic():
            raise server_busy()

    def check_position(self, position: StartPosition) -> None:
        """Raise ``RefusedError`` if receivers that begin at this position are refused now."""
        is_offset = position.kind is PositionKind.OFFSET and position.value >= 0
        if is_offset and self._refuse_offsets_until > time.monotonic():
            raise offset_before_replication(position.value)

    def check_send(self) -> None:
        """Raise ``RefusedError`` if events are rejected now."""
        if self._busy_until > time.monotonic():
            raise server_busy()

    def silence_s(self) -> float:
        """Seconds for which nothing may be written; 0 without the fault."""
        return max(0.0, self._silent_until - time.monotonic()) if self._silent_until else 0.0

    def delivery_delay_s(self, hub: str, partition_id: str) -> float:
        """Seconds by which to delay a delivery from this partition."""
        if not self._delays:
            return 0.0
        hub = hub.casefold()
        targets = ((hub, partition_id), (hub, ""), ("", ""))
        delays = [self._delays[target] for target in targets if target in self._delays]
        return delays[0].total_seconds() if delays else 0.0


def _later(duration: timedelta) -> MonotonicSeconds:
    return time.monotonic() + duration.total_seconds()
