"""An event over a client's own message: a field is decoded when it is read for the first time."""

from abc import abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from eventproc.models import EVENT_FIELDS, ReceivedEvent


class LazyEvent(ReceivedEvent):
    """Base of events that keep their message.

    The fields are slots that are empty at first. Python calls ``__getattr__`` for an empty slot,
    which decodes the field, and those that are decoded together with it.
    """

    __slots__ = ("_message",)

    def __init__(self, message: object, sequence_number: int) -> None:
        """Keep the message. Only the sequence number is needed for every event."""
        _set_message(self, message)
        _set_sequence_number(self, sequence_number)

    @abstractmethod
    def _decoded(self, name: str) -> Mapping[str, object]:
        """Return the values of this field, and of others that cost nothing more."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the field is
        """Decode the field and fill its slot."""
        if name not in _SETTERS:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        for field, value in self._decoded(name).items():
            _SETTERS[field](self, value)
        return getattr(self, name)


_Event = TypeVar("_Event", bound=LazyEvent)


def _setter(name: str) -> Any:  # noqa: ANN401 - a slot's own method
    """Return a function that fills a slot of an event although the class is frozen."""
    return getattr(LazyEvent, name).__set__


_set_message: Final = _setter("_message")
_set_sequence_number: Final = _setter("sequence_number")
_SETTERS: Final = {name: _setter(name) for name in EVENT_FIELDS if name != "sequence_number"}


def filled_events(
    events: list[_Event],
    messages: Sequence[object],
    numbers: Sequence[int],
    bodies: Sequence[bytes],
) -> list[_Event]:
    """Return new events, each over its message, with its number and body.

    The slots of all events are filled by ``map``, so no Python statement runs for each.
    """
    for fill, values in (
        (_set_message, messages),
        (_set_sequence_number, numbers),
        (_SETTERS["body"], bodies),
    ):
        deque(map(fill, events, values), maxlen=0)
    return events
