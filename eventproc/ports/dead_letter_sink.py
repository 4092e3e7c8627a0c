"""The interface of a dead-letter sink."""

from abc import abstractmethod

from eventproc.concurrency.resource import AsyncResource
from eventproc.models import (
    DeadLetter,
)


class DeadLetterSink(AsyncResource):
    """Where events that were given up are stored. Belongs to the processor's event loop.

    One for each processor; its partitions may store dead letters concurrently.
    """

    def reserve(self, user: object) -> None:
        """Reserve it, unless it opens nothing: then any number of processors may use it."""
        if type(self).open is not DeadLetterSink.open:
            super().reserve(user)

    async def open(self) -> None:
        """Connect, and check as far as possible that dead letters can be stored.

        Raises:
            ConfigurationError: the sink cannot work as it is set up.
            DeadLetterError: no answer; try again.
        """

    async def close(self) -> None:
        """Close all connections. Closing twice is allowed."""

    @abstractmethod
    async def store(self, letter: DeadLetter) -> None:
        """Return when the dead letter is stored durably. The same one may be stored again later.

        Raises:
            DeadLetterError: it is not known to be stored. The processor tries again until it is:
                the position does not move past an event whose dead letter is not stored.
        """
