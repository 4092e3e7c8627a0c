"""Events that are decoded only when they are looked at."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from eventproc.models.events import ReceivedEvent

if TYPE_CHECKING:
    import pyarrow as pa


class EventBatch(Sequence[ReceivedEvent]):
    """Received events of one partition, in order, from which columns are built without objects.

    An element is made when it is read. A slice is a batch again, and its cost does not depend on
    its length.
    """

    @overload
    def __getitem__(self, index: int) -> ReceivedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> "EventBatch": ...
    @abstractmethod
    def __getitem__(self, index: int | slice) -> "ReceivedEvent | EventBatch":
        """Return an event, or a batch of some; a slice must be without a step."""

    @property
    @abstractmethod
    def body_byte_count(self) -> int:
        """The bytes of all bodies together."""

    @abstractmethod
    def columns(self, names: Sequence[str], partition_id: str) -> "pa.RecordBatch":
        """Return these columns, a row for each event; see ``eventproc.columns``.

        Raises:
            SourceRejectedError: an event cannot be decoded.
        """


def body_bytes(events: Sequence[ReceivedEvent]) -> int:
    """Return the bytes of all bodies together; those of a batch are not decoded for it."""
    if isinstance(events, EventBatch):
        return events.body_byte_count
    return sum(len(event.body) for event in events)
