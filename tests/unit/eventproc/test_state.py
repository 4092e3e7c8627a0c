"""A state of a type: what comes back, what is refused, and what a shape may become."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
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
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Noting, Scene, seconds


@dataclass
class DeliveryCounters:
    """One line of a sum."""

    count: int = 0
    amount: Decimal = Decimal(0)


@dataclass
class Counts:
    """What a handler might keep."""

    by_customer: dict[str, DeliveryCounters] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    newest: datetime | None = None
    digest: bytes = b""


TALLIES = st.builds(DeliveryCounters, st.integers(0, 2**53), st.decimals(0, 10**9, places=2))
COUNTS = st.builds(
    Counts,
    st.dictionaries(st.text(), TALLIES, max_size=5),
    st.sets(st.text(), max_size=5),
    st.none() | st.datetimes(timezones=st.just(UTC)),
    st.binary(max_size=20),
)


def context(state: bytes | None = None) -> Any:
    """A context with a state."""
    return SimpleNamespace(partition_id="7", state=state)


@given(COUNTS)
def test_any_value_comes_back(value):
    """With all its parts, of their types."""
    codec = JsonCodec(Counts)

    assert codec.decode(codec.encode(value)) == value


@given(st.dictionaries(st.text(), TALLIES, max_size=9))
def test_equal_values_are_equal_bytes(tallies):
    """So that nothing is written because a dictionary was filled in another order."""
    codec = JsonCodec(Counts)
    back = dict(reversed(tallies.items()))

    assert codec.encode(Counts(by_customer=tallies)) == codec.encode(Counts(by_customer=back))


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (b'{"by_customer": {"a": {"count": "1"}}}', r"'7'.*Expected `int`.*by_customer"),
        (b"12", "Expected `object`, got `int`"),
        (b'{"seen": [', "truncated"),
        (b"\xff", "this is not a Counts as JSON"),
        (b'{"more": ' + b"[" * 40_000, "maximum recursion depth"),
    ],
)
def test_what_cannot_be_read_is_not_taken_for_nothing(state, sentence):
    """To count from nothing at a late position would be wrong without anybody noticing."""
    with pytest.raises(StateUnreadableError, match=sentence):
        TypedState(Counts).load(context(state))


def test_a_shape_may_grow():
    """What is missing takes its default, and what is not known is passed over."""
    old = b'{"seen": ["x"], "colour": "blue"}'

    assert TypedState(Counts).load(context(old)) == Counts(seen={"x"})


@pytest.mark.parametrize("shape", [Callable[[], int], complex, dict[str, Noting]])
def test_a_type_that_json_cannot_give_back_is_refused(shape):
    """When the handler class is made, not at its first event."""
    with pytest.raises(ConfigurationError, match="cannot be kept as JSON"):
        JsonCodec(shape)


@pytest.mark.parametrize("state", [None, b""])
def test_a_partition_without_state_begins_with_the_initial_value(state):
    """A new one for each partition: they must not share a set."""
    made = TypedState(Counts).load(context(state))
    five = TypedState(int, initial=lambda: 5).load(context(state))

    assert (made, five) == (Counts(), 5)
    assert TypedState(Counts).load(context(state)).seen is not made.seen


def test_an_edit_that_fails_keeps_nothing():
    """The block that raised did not finish what it counts."""
    held = context(b'{"count": 1}')
    tallies = TypedState(DeliveryCounters)
    with tallies.edit(held) as counters:
        counters.count += 1
    after = held.state
    with pytest.raises(ZeroDivisionError), tallies.edit(held) as counters:
        counters.count += 1 // 0

    assert tallies.load(held).count == 2
    assert held.state == after


def test_another_codec_may_take_its_place():
    """Two methods."""

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


def test_too_large_is_refused_with_the_limit():
    """By the context, before anything is stored; the handler's call fails and is repeated."""
    said = []

    class Greedy(Noting):
        async def process_events(self, context, events):
            try:
                TypedState(str).save(context, "x" * STATE_BYTES_MAX)
            except StateTooLargeError as error:
                said.append(str(error))

    async def story():
        scene = Scene()
        scene.publish(1)
        async with scene.processor(lambda: Greedy(scene)):
            await seconds(1)

    run_virtual(story())

    assert len(said) == 1
    assert f"has {STATE_BYTES_MAX + 2} bytes, the limit is {STATE_BYTES_MAX}" in said[0]


def test_ordinary_functions_keep_their_state_in_the_same_way():
    """Their context is another one."""
    tallies = TypedState(DeliveryCounters)

    class Counting(BlockingPartitionHandler):
        def process_events(
            self, context: BlockingPartitionContext, events: Sequence[ReceivedEvent]
        ) -> None:
            with tallies.edit(context) as counters:
                counters.count += len(events)

    with HandlerTestHarness(Counting) as stage:
        stage.publish("a", "b")
        stage.kill()
        stage.settle()
    state = stage.state()

    assert state is not None
    assert JsonCodec(DeliveryCounters).decode(state) == DeliveryCounters(count=2)
