"""The interface of a publisher of events."""

from abc import abstractmethod
from collections.abc import Sequence
from datetime import timedelta

from eventproc.concurrency.resource import AsyncResource
from eventproc.models import OutgoingEvent


class EventPublisher(AsyncResource):
    """Publishes events to one hub, at least once. Belongs to one event loop.

    After an error, close it and use a new one.
    """

    @property
    def takes_both(self) -> bool:
        """Whether an event may name its partition and have a key as well."""
        return True

    @abstractmethod
    async def publish(self, events: Sequence[OutgoingEvent], *, patience: timedelta) -> None:
        """Publish events, and return when the service has acknowledged every one of them.

        Events of one partition are stored in their order, and so are those of one partition key. A
        request without answer, or that the service throttles, is repeated, which may store its
        events twice.

        Args:
            events: Any number of them.
            patience: How long to repeat a request that is not acknowledged.

        Raises:
            EventRefusedError: an event cannot be published as it is. Others may be stored.
            SourceRejectedError: the service refuses for good. Some events may be stored.
            SourceUnavailableError: no acknowledgement within *patience*. Some may be stored.
        """
