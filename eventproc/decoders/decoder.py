"""The interface of a decoder.

Rule: an error of a decoder concerns one event and is permanent: the same bytes would fail again, so
the event is given up without another attempt.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from eventproc.errors import DecodeError
from eventproc.models import ReceivedEvent
from eventproc.settings import checked

T = TypeVar("T")


class Decoder(ABC, Generic[T]):
    """Converts a body to a value of one type. Subclass it for a format of your own.

    All handlers of a class share one decoder, in several threads, so it keeps no data of an event.
    """

    @property
    def shape(self) -> Any:  # noqa: ANN401 - a type, or a union of some
        """The type of the values, for the column ``value``; ``None``: there is no such column."""
        return None

    @abstractmethod
    def decode(self, body: bytes, event: ReceivedEvent) -> T:
        """Return the value of a body; raise any error if the body cannot be decoded.

        Args:
            body: What to decode. It is the event's body, or a part of it.
            event: The event, for its properties and content type.
        """

    def value_of(self, event: ReceivedEvent) -> T:
        """Return the value of an event.

        Raises:
            DecodeError: the body cannot be decoded; the decoder's error is its cause.
        """
        try:
            return self.decode(event.body, event)
        except MemoryError:
            raise
        except Exception as error:
            kind = getattr(self.shape, "__name__", None) or "value"
            raise DecodeError(
                f"the body of event {event.sequence_number} is no {kind}: {error}"
            ) from error


class FunctionDecoder(Decoder[T]):
    """Calls a function with each body."""

    @checked
    def __init__(self, function: Callable[[bytes], T]) -> None:
        self._function = function

    def decode(self, body: bytes, event: ReceivedEvent) -> T:  # noqa: ARG002 - the body is enough
        """Return what the function returns."""
        return self._function(body)
