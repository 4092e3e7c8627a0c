"""Fields that are decoded at their first read, beside fields that an event is made with."""

from collections.abc import Mapping
from dataclasses import FrozenInstanceError

import pytest

from eventproc.models._events import EVENT_FIELDS
from eventproc.sources._lazy_event import LazyEvent, setter_of


class Counting(LazyEvent, filled=("sequence_number",)):
    """Notes what it decodes."""

    __slots__ = ("decoded",)
    decoded: list[str]

    def __init__(self, number: int) -> None:
        setter_of(Counting, "sequence_number")(self, number)
        setter_of(Counting, "decoded")(self, [])

    def _decoded_body(self) -> bytes:
        self.decoded.append("body")
        return b"body"

    def _decoded(self, name: str) -> Mapping[str, object]:
        self.decoded.append(name)
        if name in {"content_type", "message_id"}:
            return {"content_type": "c", "message_id": "m"}
        return {name: name.upper()}


def test_a_field_is_decoded_once():
    """At its first read; a field that the event was made with is not decoded."""
    event = Counting(7)
    found = [(event.body, event.offset, event.sequence_number) for _ in range(2)]

    assert found == [(b"body", "OFFSET", 7)] * 2
    assert event.decoded == ["body", "offset"]


def test_fields_that_are_decoded_together_are_filled_together():
    """Whichever of them is read first."""
    event = Counting(7)

    assert (event.message_id, event.content_type) == ("m", "c")
    assert event.decoded == ["message_id"]


def test_a_field_that_cannot_be_decoded_raises_at_each_read():
    """Its slot stays empty, and the error is the one of the decoder."""

    class Broken(Counting):
        __slots__ = ()

        def _decoded(self, name: str) -> Mapping[str, object]:
            raise ValueError(name)

    event = Broken(7)
    for _ in range(2):
        with pytest.raises(ValueError, match="offset"):
            _ = event.offset


@pytest.mark.parametrize("name", EVENT_FIELDS)
def test_no_field_can_be_set(name):
    """Whether it is filled or decoded on demand."""
    with pytest.raises(FrozenInstanceError):
        setattr(Counting(7), name, b"")


def test_a_field_that_is_filled_is_read_as_any_slot():
    """A class with ``__getattr__`` would make each read of it several times slower."""
    assert not hasattr(Counting, "__getattr__")
    assert not isinstance(Counting.__dict__.get("sequence_number"), property)
    assert isinstance(Counting.__dict__["body"], property)
