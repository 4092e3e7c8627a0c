"""The interface of a dead-letter sink."""

from abc import ABC, abstractmethod

from eventproc.models import (
    DeadLetter,
)


class DeadLetterSink(ABC):
    """Where events that were given up are stored. Belongs to the processor's event loop.

    One for each processor; its partitions may store dead letters concurrently.
    """

    async def open(self) -> None:  # noqa: B027 - a sink may need no connection
        """Connect, and check as far as possible that dead letters can be stored.

        Raises:
            ConfigurationError: the sink cannot work as it is set up.
            DeadLetterError: no answer; try again.
        """

    async def close(self) -> None:  # noqa: B027
        """Close all connections. Closing twice is allowed."""

    @abstractmethod
    async def store(self, letter: DeadLetter) -> None:
        """Return when the dead letter is stored durably. The same one may be stored again later.

        Raises:
            DeadLetterError: it is not known to be stored. The processor tries again until it is:
                the position does not move past an event whose dead letter is not stored.
        """
