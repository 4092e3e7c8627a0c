"""Typed state: encoding and decoding, what is refused, and how its type may change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc import (
    BlockingPartitionContext,
    BlockingPartitionHandler,
    ReceivedEvent,
    StateTooLargeError,
)
from eventproc.errors import ConfigurationError, StateUnreadableError
from eventproc.models import STATE_BYTES_MAX
from eventproc.state import JsonCodec, StateCodec, TypedState
from eventproc.testing import HandlerTestHarness
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds


class Color(Enum):
    """An enum."""

    RED = "red"


@dataclass
class Total:
    """A count and an amount."""

    count: int = 0
    amount: Decimal = Decimal(0)


@dataclass
class Counts:
    """What a handler might keep."""

    by_customer: dict[str, Total] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    newest: datetime | None = None
    digest: bytes = b""


TOTALS = st.builds(Total, st.integers(0, 2**53), st.decimals(0, 10**9, places=2))
COUNTS = st.builds(
    Counts,
    st.dictionaries(st.text(), TOTALS, max_size=5),
    st.sets(st.text(), max_size=5),
    st.none() | st.datetimes(timezones=st.just(UTC)),
    st.binary(max_size=20),
)


def context(state: bytes | None = None) -> Any:
    """A context with this state."""
    return SimpleNamespace(partition_id="7", state=state)


@given(COUNTS)
def test_decoding_returns_the_encoded_value(value):
    """With all its parts, and their types."""
    codec = JsonCodec(Counts)

    assert codec.decode(codec.encode(value)) == value


@given(st.dictionaries(st.text(), TOTALS, max_size=9))
def test_equal_values_have_equal_encodings(totals):
    """So the order in which a dictionary was filled causes no write."""
    codec = JsonCodec(Counts)
    back = dict(reversed(totals.items()))

    assert codec.encode(Counts(by_customer=totals)) == codec.encode(Counts(by_customer=back))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (b'{"by_customer": {"a": {"count": "1"}}}', r"'7'.*Expected `int`.*by_customer"),
        (b"12", "Expected `object`, got `int`"),
        (b'{"seen": [', "truncated"),
        (b"\xff", "this is not a Counts as JSON"),
        (b'{"more": ' + b"[" * 40_000, "maximum recursion depth"),
    ],
)
def test_state_that_cannot_be_decoded_raises(state, message):
    """The initial value would silently count from nothing at a late position."""
    with pytest.raises(StateUnreadableError, match=message):
        TypedState(Counts).load(context(state))


def test_a_type_may_get_new_fields_and_lose_old_ones():
    """A missing field gets its default, and an unknown one is ignored."""
    old = b'{"seen": ["x"], "colour": "blue"}'

    assert TypedState(Counts).load(context(old)) == Counts(seen={"x"})


@pytest.mark.parametrize("state_type", [Callable[[], int], complex, dict[str, Noting]])
def test_a_type_that_json_cannot_restore_is_refused(state_type):
    """When the handler class is made, not at its first event."""
    with pytest.raises(ConfigurationError, match="cannot be kept as JSON"):
        JsonCodec(state_type)


@pytest.mark.parametrize("state", [None, b""])
def test_a_partition_without_state_begins_with_the_initial_value(state):
    """A new value for each partition: they must not share a set."""
    made = TypedState(Counts).load(context(state))
    five = TypedState(int, initial=lambda: 5).load(context(state))

    assert (made, five) == (Counts(), 5)
    assert TypedState(Counts).load(context(state)).seen is not made.seen


def test_an_edit_that_raises_leaves_the_state_unchanged():
    """The block did not finish its changes."""
    held = context(b'{"count": 1}')
    totals = TypedState(Total)
    with totals.edit(held) as counters:
        counters.count += 1
    after = held.state

    def change_half() -> None:
        with totals.edit(held) as counters:
            counters.count += 1
            counters.count //= 0

    with pytest.raises(ZeroDivisionError):
        change_half()

    assert totals.load(held).count == 2
    assert held.state == after


@pytest.mark.parametrize(
    ("shape", "value"),
    [(float, float("nan")), (float, float("inf")), (int, 1.5), (list[int], [1, "2"])],
)
def test_a_value_that_could_not_be_read_again_is_not_saved(shape, value):
    """Its call fails; otherwise each later one would, until an operator drops the state."""
    held = context(b"1")
    with pytest.raises(TypeError, match="cannot be read again as its type"):
        TypedState(shape, initial=lambda: value).save(held, value)

    assert held.state == b"1"


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (dict[int, int], {2: 1, 1: 2}),
        (dict[date, int], {date(2026, 1, 31): 1}),
        (dict[float, int], {1.5: 1}),
        (dict[Color, int], {Color.RED: 1}),
        (dict[str, dict[int, str]], {"a": {1: "b"}}),
    ],
)
def test_a_dictionary_may_have_keys_that_are_no_text(shape, value):
    """Equal values give equal bytes."""
    held, again = context(), context()
    states = TypedState(shape)
    states.save(held, value)
    states.save(again, dict(reversed(value.items())))

    assert states.load(held) == value
    assert held.state == again.state


def test_another_codec_may_replace_json():
    """It needs two methods."""

    class Ascii(StateCodec[int]):
        def encode(self, value):
            return str(value).encode()

        def decode(self, data):
            return int(data)

    held = context()
    numbers = TypedState(int, codec=Ascii())
    with numbers.edit(held) as number:
        assert number == 0
    numbers.save(held, 42)

    assert (held.state, numbers.load(held)) == (b"42", 42)


def test_saving_state_that_is_too_large_raises_with_the_limit():
    """In the handler's call, before anything is stored."""
    messages = []

    class TooLarge(Noting):
        async def process_events(self, context, events):
            try:
                TypedState(str).save(context, "x" * STATE_BYTES_MAX)
            except StateTooLargeError as error:
                messages.append(str(error))

    async def scenario():
        setup = Setup()
        setup.publish(1)
        async with setup.processor(lambda: TooLarge(setup)):
            await seconds(1)

    run_virtual(scenario())

    assert len(messages) == 1
    assert f"has {STATE_BYTES_MAX + 2} bytes, the limit is {STATE_BYTES_MAX}" in messages[0]


def test_a_blocking_handler_keeps_typed_state_in_the_same_way():
    """Through its own kind of context."""
    totals = TypedState(Total)

    class Counting(BlockingPartitionHandler):
        def process_events(
            self, context: BlockingPartitionContext, events: Sequence[ReceivedEvent]
        ) -> None:
            with totals.edit(context) as counters:
                counters.count += len(events)

    with HandlerTestHarness(Counting) as harness:
        harness.publish("a", "b")
        harness.kill()
        harness.settle()
    state = harness.state()

    assert state is not None
    assert JsonCodec(Total).decode(state) == Total(count=2)
