"""Handlers with a decoder get values; an event that cannot be decoded is given up at once."""

from datetime import timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from eventproc import (
    BlockingPartitionHandler,
    CloseReason,
    ConfigurationError,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc._delivery.checks import check_handler
from eventproc.decoders import FunctionDecoder, JsonDecoder
from eventproc.errors import DecodeError
from eventproc.testing import HandlerTestHarness

BAD = b'{"customer": 1}'
LETTERS = FailurePolicy(action=FailureAction.DEAD_LETTER)


class Order(msgspec.Struct):
    """What an event says."""

    customer: str
    count: int = 1


def body(customer: str, count: int = 1) -> bytes:
    """Return an order as JSON."""
    return msgspec.json.encode(Order(customer, count))


class Orders(PartitionHandler[Order]):
    """Keeps the orders that it gets."""

    decode = JsonDecoder(Order)
    orders: list[Order]
    errors: list[Exception]

    async def process_value(self, context, value: Order, event: ReceivedEvent) -> None:
        """Keep the order."""
        Orders.orders.append(value)

    async def process_error(self, context, error):
        """Keep the error."""
        Orders.errors.append(error)


class Batches(PartitionHandler[Order]):
    """Takes batches, and decodes them before it does anything."""

    decode = JsonDecoder(Order)

    async def process_events(self, context, events):
        """Keep the orders of a batch."""
        Orders.orders += self.values_of(events)


class Blocking(BlockingPartitionHandler[Order]):
    """The same with ordinary functions."""

    decode = JsonDecoder(Order)

    def process_value(self, context, value: Order, event: ReceivedEvent) -> None:
        """Keep the order."""
        Orders.orders.append(value)


class BlockingBatches(BlockingPartitionHandler[Order]):
    """Batches in a thread."""

    decode = JsonDecoder(Order)

    def process_events(self, context, events):
        """Keep the orders of a batch."""
        Orders.orders += self.values_of(events)


class Columns(PartitionHandler[Order]):
    """Gets a column of structs."""

    decode = JsonDecoder(Order)
    columns = ("sequenceNumber", "value")

    async def process_columns(self, context, columns: pa.RecordBatch) -> None:
        """Keep the orders of the rows."""
        assert columns.schema.names == ["sequenceNumber", "value"]
        Orders.orders += [Order(**row) for row in columns["value"].to_pylist()]


class BlockingColumns(BlockingPartitionHandler[Order]):
    """The same in a thread."""

    decode = JsonDecoder(Order)
    columns = ("value",)

    def process_columns(self, context, columns: pa.RecordBatch) -> None:
        """Keep the orders of the rows."""
        Orders.orders += [Order(**row) for row in columns["value"].to_pylist()]


KINDS = [Orders, Batches, Blocking, BlockingBatches, Columns, BlockingColumns]


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    Orders.orders, Orders.errors = [], []


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_gets_values_and_what_cannot_be_decoded_becomes_a_dead_letter(kind):
    """At once, without an attempt more, with the decoder's error; every other event is handled
    once."""
    with HandlerTestHarness(kind, config=EventProcessorConfig(failure_policy=LETTERS)) as harness:
        begun = harness.now
        harness.publish(body("a"), BAD, body("b", 2), b"no JSON", body("c"))
        harness.settle()
        letters = harness.dead_letters

        assert Orders.orders == [Order("a"), Order("b", 2), Order("c")]
        assert [letter.event.body for letter in letters] == [BAD, b"no JSON"]
        assert {letter.attempt_count for letter in letters} == {1}
        assert letters[0].error_type == "eventproc.errors.DecodeError"
        assert "Expected `str`, got `int` - at `$.customer`" in letters[0].error_message
        assert "msgspec.ValidationError" in letters[0].traceback
        assert harness.now - begun < timedelta(seconds=1)


def test_an_event_that_cannot_be_decoded_stops_the_partition_where_the_policy_says_so():
    """That is the default: nothing is passed over that an operator has not seen."""
    with HandlerTestHarness(Orders) as harness:
        harness.publish(body("a"), BAD, body("b"))
        harness.advance(timedelta(seconds=10))
        harness.assert_closed(CloseReason.HANDLER_FAILED)

        assert Orders.orders == [Order("a")]
        assert isinstance(Orders.errors[0], DecodeError)


def test_an_error_of_the_handler_itself_is_retried_as_before():
    """Only decoding is final."""
    attempts = []

    class Failing(PartitionHandler[Order]):
        decode = JsonDecoder(Order)

        async def process_value(self, context, value, event):
            attempts.append(value)
            raise ValueError("no")

    policy = FailurePolicy(attempts_max=3, action=FailureAction.SKIP)
    with HandlerTestHarness(Failing, config=EventProcessorConfig(failure_policy=policy)) as harness:
        harness.publish(body("a"))
        harness.settle()

    assert attempts == [Order("a")] * 3


def test_an_undecodable_event_is_given_up_even_if_every_error_is_transient():
    """The same bytes would fail again."""
    policy = FailurePolicy(action=FailureAction.DEAD_LETTER, transient=(Exception,))
    with HandlerTestHarness(Orders, config=EventProcessorConfig(failure_policy=policy)) as harness:
        harness.publish(BAD, body("a"))
        harness.settle()

        assert [letter.attempt_count for letter in harness.dead_letters] == [1]
        assert Orders.orders == [Order("a")]


@pytest.mark.parametrize("kind", [Orders, Blocking])
def test_the_key_may_be_in_the_decoded_value(kind):
    """What cannot be decoded has no key, and is given up; the other keys go on."""
    config = EventProcessorConfig(
        key_concurrency=4,
        key_selector=lambda event: JsonDecoder(Order).value_of(event).customer,
        failure_policy=LETTERS,
    )
    with HandlerTestHarness(kind, config=config) as harness:
        harness.publish(*(body(customer, n) for n in range(5) for customer in "ab"), BAD)
        harness.settle()

        assert [letter.event.body for letter in harness.dead_letters] == [BAD]
    for customer in "ab":
        assert [o.count for o in Orders.orders if o.customer == customer] == [0, 1, 2, 3, 4]


def test_nothing_is_decoded_that_the_handler_does_not_ask_for():
    """A handler may look at properties first, and decode few events."""
    decoded = []

    def note(raw: bytes) -> bytes:
        decoded.append(raw)
        return raw

    class Few(PartitionHandler[bytes]):
        decode = FunctionDecoder(note)

        async def process_event(self, context, event):
            if event.properties.get("kind") == "order":
                self.value_of(event)

    with HandlerTestHarness(Few) as harness:
        harness.publish("1", properties={"kind": "order"})
        harness.publish("2", "3", properties={"kind": "other"})
        harness.settle()

    assert decoded == [b"1"]


def test_a_value_that_no_column_can_have_is_given_up():
    """An integer of more than 64 bits; the rows beside it are handled."""
    with HandlerTestHarness(
        Columns, config=EventProcessorConfig(failure_policy=LETTERS)
    ) as harness:
        harness.publish(body("a"), body("b", 2**70), body("c"))
        harness.settle()

        assert Orders.orders == [Order("a"), Order("c")]
        assert "column 'value'" in harness.dead_letters[0].error_message


class Both(Orders):
    """Has columns for Spark."""

    async def process_columns(self, context, columns):
        """Not called by a processor."""
        raise AssertionError


def test_a_handler_with_columns_for_spark_gets_values_from_a_processor():
    """As one with ``process_event`` and columns gets events."""
    with HandlerTestHarness(Both) as harness:
        harness.publish(body("a"))
        harness.settle()

    assert Orders.orders == [Order("a")]


class NoDecoder(PartitionHandler[Order]):
    """Forgot it."""

    async def process_value(self, context, value, event):
        """Never called."""


class TwoMethods(Orders):
    """Has one more method for events."""

    async def process_event(self, context, event):
        """Called in place of ``process_value``."""


class NoType(PartitionHandler[object]):
    """Its decoder does not know the type."""

    decode = FunctionDecoder(len)
    columns = ("value",)

    async def process_columns(self, context, columns):
        """Never called."""


class NoColumn(PartitionHandler[list[Any]]):
    """Its type has no counterpart in Arrow."""

    decode = JsonDecoder(list[Any])
    columns = ("value",)

    async def process_columns(self, context, columns):
        """Never called."""


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (NoDecoder, "its decode is None: set it to a decoder"),
        (TwoMethods, "defines process_value and process_event, which would be called instead"),
        (NoType, "needs a decoder that knows the type"),
        (NoColumn, "cannot have Any"),
    ],
)
def test_a_handler_that_would_get_no_values_is_refused(kind, message):
    """When the processor is built, with the remedy."""
    with pytest.raises(ConfigurationError, match=message):
        check_handler(kind)


async def test_a_handler_without_a_decoder_cannot_decode():
    """The error names what to set."""
    with pytest.raises(TypeError, match="set decode"):
        PartitionHandler[Order]().values_of([])
