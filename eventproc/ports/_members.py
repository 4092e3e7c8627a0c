"""The interfaces of a roster, and of what reports the health of processors."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from eventproc._base.resource import AsyncResource
from eventproc.models import ConsumerGroup
from eventproc.models._statistics import GroupStatistics, Phase


class Roster(AsyncResource):
    """Says which processors a group should have, whether they run yet or not.

    It is a hint. The leader of a group with a published placement also plans for the members that
    it names; whether a processor may serve something is decided by its lease alone. So a roster
    that is wrong or out of date costs time or moves, and never lets two processors serve the same.
    """

    own_id: str | None = None
    """The owner id of this process in the roster; ``None`` if the user has to give it."""

    interval: timedelta = timedelta(seconds=10)
    """The least time between two reads."""

    patience: timedelta = timedelta(seconds=30)
    """For how long the share of a member that has not come yet is left to it."""

    def reserve(self, user: object) -> None:
        """Reserve it, unless it opens nothing: then any number of processors may use it."""
        if type(self).open is not Roster.open:
            super().reserve(user)

    async def open(self) -> None:
        """Prepare the roster for reads. By default nothing is to be done."""

    async def close(self) -> None:
        """Close what ``open`` has opened. By default nothing is to be done."""

    @abstractmethod
    async def owner_ids(self) -> frozenset[str]:
        """Read the owner ids of the members that the group should have.

        Raises:
            ConfigurationError: it cannot be read as configured; the message names the remedy.
            RosterUnavailableError: no answer; try again.
        """


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
