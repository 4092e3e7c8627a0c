"""The interface of a reader of dead letters."""

from abc import abstractmethod
from collections.abc import AsyncIterator

from eventproc.concurrency.resource import AsyncResource
from eventproc.models import StoredLetter


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
