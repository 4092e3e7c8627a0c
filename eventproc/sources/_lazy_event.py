"""Events whose fields are decoded when they are read for the first time."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from eventproc.models import UNDECODED, ReceivedEvent
from eventproc.models._events import EVENT_FIELDS

DEPTH_MAX: Final = 50
"""Deepest nesting of properties in a dead letter; an event with deeper ones is stored undecoded."""


class LazyEvent(ReceivedEvent):
    """Base class of events that keep their encoded form and decode fields on first access.

    A class names the fields that its events are made with: ``class OurEvent(LazyEvent,
    filled=("sequence_number",))``. These are plain slots. Every other field is a property over its
    slot, which is empty at first: the first read fills it, and those of the fields that are decoded
    together with it.

    ``__getattr__`` would do the same, but Python reads every field of a class that has it five
    times slower, those that are filled included.
    """

    __slots__ = ()

    def __init_subclass__(cls, *, filled: Collection[str] | None = None) -> None:
        """Make properties of the fields that are not *filled*; ``None``: as in the base."""
        if filled is None:
            return
        for name in set(EVENT_FIELDS).difference(filled):
            setattr(cls, name, _decoded_at_first_read(name))

    def _decoded_body(self) -> bytes:
        """Return the body, without decoding other fields: many handlers read only the body."""
        raise NotImplementedError

    @abstractmethod
    def _decoded(self, name: str) -> Mapping[str, object]:
        """Return the value of this field, and of the fields that are decoded together with it."""

    def _encoded(self) -> bytes:
        """Return the message as it was received, as far as the event has it."""
        return self.body

    def storable(self) -> ReceivedEvent:
        known: dict[str, Any] = {}
        reason = ""
        for name in EVENT_FIELDS:
            try:
                known[name] = _checked(name, getattr(self, name))
            except Exception as error:  # noqa: BLE001 - whatever it is, the event must be stored
                reason = reason or str(error)
        if not reason:
            return self
        known["body"] = self._encoded()
        known["system_properties"] = {**known.get("system_properties", {}), UNDECODED: reason}
        known.setdefault("enqueued_time", _NO_TIME)
        return ReceivedEvent(**known)

    def _fill(self, name: str) -> object:
        """Decode a field, fill its slot and return it."""
        if name == "body":
            body = self._decoded_body()
            _set_body(self, body)
            return body
        found = self._decoded(name)
        for field, value in found.items():
            _SETTERS[field](self, value)
        return found[name]


def _checked(name: str, value: object) -> object:
    if _is_deeper(value, DEPTH_MAX):
        raise ValueError(f"{name} has values that are nested more than {DEPTH_MAX} deep")
    return value


def _is_deeper(value: object, depth: int) -> bool:
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        return False
    return not depth or any(_is_deeper(inner, depth - 1) for inner in value)


def _decoded_at_first_read(name: str) -> property:
    """Return a property over a field's slot, which the first read fills."""
    in_slot = getattr(ReceivedEvent, name).__get__

    def read(event: LazyEvent) -> object:
        try:
            return in_slot(event)
        except AttributeError:
            return event._fill(name)  # noqa: SLF001 - of this class

    return property(read)


def setter_of(kind: type[ReceivedEvent], slot: str) -> Any:  # noqa: ANN401 - a slot's own method
    """Return a function that fills a slot of an event although the class is frozen."""
    return getattr(kind, slot).__set__


_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)

_set_body: Final = setter_of(ReceivedEvent, "body")
_SETTERS: Final = {
    name: setter_of(ReceivedEvent, name)
    for name in EVENT_FIELDS
    if name not in {"sequence_number", "body"}
}
