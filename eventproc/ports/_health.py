"""The interface of what reports the health of processors."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eventproc.models import ConsumerGroup
from eventproc.models._statistics import GroupStatistics, Phase

Ping = Callable[[Callable[[], None]], None]
"""Has a function called on an event loop, soon; may be called from any thread."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WatchedMember:
    """A processor, as its health is seen from another thread."""

    owner_id: str
    group: ConsumerGroup
    phase: Callable[[], Phase]
    """Returns what the processor is doing."""

    awaited: Callable[[], str]
    """Returns what it waits for while it starts, in words for an operator."""

    failure: Callable[[], str]
    """Returns the error that has ended it, in words for an operator; empty if none has."""

    statistics: Callable[[], GroupStatistics | None]
    """Returns a snapshot; ``None`` if it changed during each attempt to read it."""

    display_name: Callable[[str], str]
    """Returns the user's name for a partition or resource."""

    ping_loop: Ping
    """Asks the processor's."""

    ping_store: Ping
    """Asks the store's: in a thread of its own, or the same loop."""

    meter_provider: Any
    """OpenTelemetry's provider that the metrics go to; ``None``: the global one."""


class HealthReporter(ABC):
    """Reports on processors for as long as they run."""

    @abstractmethod
    async def begin(self, member: WatchedMember) -> None:
        """Report on a processor that starts.

        Raises:
            ConfigurationError: it cannot be reported, as the address is in use.
        """

    @abstractmethod
    async def end(self, member: WatchedMember) -> None:
        """Report no more on a processor that has stopped. Never raises."""
