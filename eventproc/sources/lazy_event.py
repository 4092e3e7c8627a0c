"""Events whose fields are decoded when they are read for the first time."""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from eventproc.models import EVENT_FIELDS, ReceivedEvent


class LazyEvent(ReceivedEvent):
    """Base of events that keep what they are decoded from, in slots of their own.

    The fields are slots that are empty at first. Python calls ``__getattr__`` for an empty slot,
    which decodes the field, and those that are decoded together with it. Later reads cost as much
    as for any object.
    """

    __slots__ = ()

    @abstractmethod
    def _decoded_body(self) -> bytes:
        """Return the body, by itself: nearly every handler reads it."""

    @abstractmethod
    def _decoded(self, name: str) -> Mapping[str, object]:
        """Return the values of this other field, and of those that cost nothing more."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the field is
        """Decode the field and fill its slot."""
        if name == "body":
            body = self._decoded_body()
            _set_body(self, body)
            return body
        if name not in _SETTERS:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        for field, value in self._decoded(name).items():
            _SETTERS[field](self, value)
        return getattr(self, name)


def setter_of(kind: type[ReceivedEvent], slot: str) -> Any:  # noqa: ANN401 - a slot's own method
    """Return a function that fills a slot of an event although the class is frozen."""
    return getattr(kind, slot).__set__


_set_body: Final = setter_of(ReceivedEvent, "body")
_SETTERS: Final = {
    name: setter_of(ReceivedEvent, name)
    for name in EVENT_FIELDS
    if name not in {"sequence_number", "body"}
}


def fill_all(
    setter: Callable[..., object], events: Iterable[LazyEvent], values: Iterable[object]
) -> None:
    """Fill the same slot of each event; ``map`` does it, so no Python statement runs for each."""
    deque(map(setter, events, values), maxlen=0)
