"""The interfaces of a dead-letter sink, and of a reader of what it stored."""

from abc import abstractmethod
from collections.abc import AsyncIterator

from eventproc._base.resource import AsyncResource
from eventproc.models import DeadLetter, StoredLetter


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


class DeadLetterReader(AsyncResource):
    """Reads the dead letters that a sink has stored, and removes them. Belongs to one event loop.

    ``open`` raises ``ConfigurationError`` if the place does not exist or may not be read, and
    ``DeadLetterError`` without an answer.
    """

    @abstractmethod
    def letters(self) -> AsyncIterator[StoredLetter]:
        """Yield the letters that are stored when it is called, each event once.

        Letters of one partition come in the order of their sequence numbers; those that are
        damaged come last, or in their place. Letters that are stored meanwhile are left out, so
        that a replay ends even if its events fail again.

        Raises:
            DeadLetterError: no answer; call again.
        """

    @abstractmethod
    async def remove(self, stored: StoredLetter) -> bool:
        """Remove a letter that ``letters`` of this reader has yielded; return when that is durable.

        Returns ``False`` if it was removed or replaced by another process since it was read.

        Raises:
            DeadLetterError: it is not known to be removed.
        """
