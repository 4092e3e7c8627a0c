"""Decoders of bodies: JSON, MessagePack, functions."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_type

import msgspec
import pytest

from eventproc._delivery.handler import BlockingPartitionHandler, PartitionHandler
from eventproc.decoders import Decoder, FunctionDecoder, JsonDecoder, MsgpackDecoder
from eventproc.errors import ConfigurationError, DecodeError
from eventproc.models import ReceivedEvent

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Order(msgspec.Struct):
    """What a body has."""

    article: str
    count: int = 1


@dataclass
class Payment:
    """The same as a dataclass."""

    amount: float


class Created(msgspec.Struct, tag="created"):
    """One of two."""


class Paid(msgspec.Struct, tag="paid"):
    """The other one."""


def event(body: bytes, **fields: Any) -> ReceivedEvent:
    """Return an event with this body."""
    return ReceivedEvent(body=body, sequence_number=7, offset="7", enqueued_time=NOON, **fields)


def test_a_body_becomes_a_value_of_the_type():
    """A struct, a dataclass, a union of tagged structs, or anything."""
    either: Decoder[Created | Paid] = JsonDecoder.any_of(Created, Paid)

    assert JsonDecoder(Order).value_of(event(b'{"article": "a"}')) == Order("a", 1)
    assert JsonDecoder(Payment).value_of(event(b'{"amount": 2}')) == Payment(2.0)
    assert either.value_of(event(b'{"type": "paid"}')) == Paid()
    assert JsonDecoder().value_of(event(b"[1, null]")) == [1, None]
    assert MsgpackDecoder(Order).value_of(event(msgspec.msgpack.encode(Order("b", 2)))) == Order(
        "b", 2
    )
    assert FunctionDecoder(int).value_of(event(b"12")) == 12


@pytest.mark.parametrize(
    ("decoder", "body", "message"),
    [
        (JsonDecoder(Order), b"{}", "no Order: Object missing required field `article`"),
        (JsonDecoder(Order), b'{"article": "a", "count": "2"}', "got `str` - at `\\$.count`"),
        (JsonDecoder(), b"\xff", "is no value"),
        (JsonDecoder(), b"[" * 100_000, "is no value"),
        (MsgpackDecoder(Order), b"\x01", "no Order"),
        (FunctionDecoder(int), b"two", "invalid literal"),
    ],
)
def test_a_body_that_cannot_be_decoded_is_an_error_with_its_cause(decoder, body, message):
    """The message names the event and says what is wrong, as the decoder does."""
    with pytest.raises(DecodeError, match=message) as caught:
        decoder.value_of(event(body))

    assert "event 7" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_numbers_in_quotes_are_accepted_where_that_is_wanted():
    """By default the types are those of JSON."""
    body = event(b'{"article": "a", "count": "2"}')

    assert JsonDecoder(Order, strict=False).value_of(body) == Order("a", 2)
    assert MsgpackDecoder(int, strict=False).value_of(event(msgspec.msgpack.encode("2"))) == 2


def test_a_lack_of_memory_is_no_failure_of_the_event():
    """Another attempt may succeed."""

    def fail(_: bytes) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        FunctionDecoder(fail).value_of(event(b""))


@pytest.mark.parametrize("kind", [JsonDecoder, MsgpackDecoder])
def test_a_type_that_cannot_be_decoded_is_refused_when_the_decoder_is_made(kind):
    """Not at the first event."""
    with pytest.raises(ConfigurationError, match="cannot be the type of decoded values"):
        kind(complex)


# Checked by the type checker, which fails on a comment that is not needed.


class Typed(PartitionHandler[Order]):
    """A handler of structs."""

    decode = JsonDecoder(Order)

    async def process_value(self, context, value: Order, event: ReceivedEvent) -> None:
        """Types of all three."""
        assert_type(value.count, int)
        assert_type(self.value_of(event), Order)
        assert_type(self.values_of([event]), list[Order])


class Mistyped(PartitionHandler[Order]):
    """Its decoder has another type."""

    decode = JsonDecoder(Payment)  # type: ignore[arg-type]

    async def process_value(self, context, value: Payment, event) -> None:  # type: ignore[override]
        """A struct is expected."""


class MistypedBlocking(BlockingPartitionHandler[Order]):
    """The same with ordinary functions."""

    decode = JsonDecoder(Payment)  # type: ignore[arg-type]

    def process_value(self, context, value: Payment, event) -> None:  # type: ignore[override]
        """A struct is expected."""


class Untyped(PartitionHandler):
    """Without values it needs no type."""


def test_types_follow_from_the_decoder():
    """For a type checker, which reads this file: here only that the classes exist."""
    decoder = JsonDecoder(Order)
    assert_type(decoder, JsonDecoder[Order])
    assert_type(FunctionDecoder(int), FunctionDecoder[int])

    assert Typed().decode is not None
    assert Untyped().decode is None
