"""What is to go wrong, and until when.

Rule: this file only remembers. Connections and links ask it at the moments where the service could
fail; nothing here reaches into them, so an emulator without faults pays one look at a flag.
"""

import time
from dataclasses import dataclass, field
from datetime import timedelta

from eventproc.emulator.refusal import server_busy

MonotonicSeconds = float


@dataclass(slots=True)
class Faults:
    """The faults of one emulator. Each lasts for its time, or until ``clear``."""

    _refuse_connections_until: MonotonicSeconds = 0.0
    _refuse_links_until: MonotonicSeconds = 0.0
    _busy_until: MonotonicSeconds = 0.0
    _silent_until: MonotonicSeconds = 0.0
    _delays: dict[tuple[str, str], timedelta] = field(default_factory=dict)

    def refuse_connections(self, duration: timedelta) -> None:
        """Drop every new connection as soon as it is made."""
        self._refuse_connections_until = _later(duration)

    def refuse_links(self, duration: timedelta) -> None:
        """Answer every new link to a hub with the service's ``server-busy``."""
        self._refuse_links_until = _later(duration)

    def be_busy(self, duration: timedelta) -> None:
        """Answer everything that is sent to a hub with the service's ``server-busy``."""
        self._busy_until = _later(duration)

    def fall_silent(self, duration: timedelta) -> None:
        """Keep every connection open and send nothing on it; what was due follows afterwards."""
        self._silent_until = _later(duration)

    def delay_deliveries(
        self, delay: timedelta, hub: str | None = None, partition_id: str | None = None
    ) -> None:
        """Let each delivery wait: of one partition, of one hub, or all. Zero ends it."""
        place = ((hub or "").casefold(), partition_id or "")
        if delay > timedelta(0):
            self._delays[place] = delay
        else:
            self._delays.pop(place, None)

    def clear(self) -> None:
        """Behave again, from now on."""
        self._refuse_connections_until = self._refuse_links_until = 0.0
        self._busy_until = self._silent_until = 0.0
        self._delays.clear()

    # --- what the server asks --------------------------------------------------------------------

    def refuses_connections(self) -> bool:
        """Whether a new connection is to be dropped."""
        return self._refuse_connections_until > time.monotonic()

    def check_link(self) -> None:
        """Raise ``RefusedError`` if no new link may be had now."""
        if self._refuse_links_until > time.monotonic():
            raise server_busy()

    def check_send(self) -> None:
        """Raise ``RefusedError`` if nothing may be sent now."""
        if self._busy_until > time.monotonic():
            raise server_busy()

    def silence_s(self) -> float:
        """For how long nothing may be written."""
        return max(0.0, self._silent_until - time.monotonic()) if self._silent_until else 0.0

    def delivery_delay_s(self, hub: str, partition_id: str) -> float:
        """How long a delivery from this partition is to wait."""
        if not self._delays:
            return 0.0
        hub = hub.casefold()
        places = ((hub, partition_id), (hub, ""), ("", ""))
        delays = [self._delays[place] for place in places if place in self._delays]
        return delays[0].total_seconds() if delays else 0.0


def _later(duration: timedelta) -> MonotonicSeconds:
    return time.monotonic() + duration.total_seconds()
