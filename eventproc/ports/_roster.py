"""The interface of a roster: which processors a group should have."""

from abc import abstractmethod
from datetime import timedelta

from eventproc._base.resource import AsyncResource


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
