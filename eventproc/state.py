"""A handler's state as a value of a type, in place of bytes.

Rule 1: what cannot be read is never taken for nothing: to count from nothing at a late position
would be wrong without anybody noticing.
Rule 2: a field that is missing takes its default and one that is not known is passed over, so a
shape may grow while a group is at work.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

import msgspec

from eventproc.errors import ConfigurationError, StateUnreadableError

T = TypeVar("T")


class Stateful(Protocol):
    """What a state is kept in: the context of a handler, coroutines or ordinary functions alike."""

    @property
    def partition_id(self) -> str:
        """Which partition this is."""

    @property
    def state(self) -> bytes | None:
        """The handler's own state."""

    @state.setter
    def state(self, value: bytes | None) -> None: ...


class StateCodec(ABC, Generic[T]):
    """How a value becomes bytes, and they a value again."""

    @abstractmethod
    def encode(self, value: T) -> bytes:
        """Return the bytes of a value; never empty, because an empty state is none."""

    @abstractmethod
    def decode(self, data: bytes) -> T:
        """Return the value of bytes.

        Raises:
            StateUnreadableError: They are not what this codec writes.
        """


class JsonCodec(StateCodec[T]):
    """Values of one type as JSON: dataclasses, and what they are made of.

    Fields may be numbers, text, bytes (written as base64), dates and times, decimals, enums, lists,
    sets, tuples, dictionaries and dataclasses again. What is read is checked against the type.
    Equal values are equal bytes.
    """

    def __init__(self, shape: type[T], *, indent: int = 0) -> None:
        """Refuse a type that JSON could not give back. *indent*: blanks, for people who read it."""
        self._shape = shape
        self._indent = indent
        try:
            self._encoder = msgspec.json.Encoder(order="deterministic")
            self._decoder = msgspec.json.Decoder(shape)
            msgspec.json.schema(shape)  # Refuses what the decoder would refuse when it meets it.
        except TypeError as error:
            raise ConfigurationError(f"{shape!r} cannot be kept as JSON: {error}") from error

    def __repr__(self) -> str:
        return f"JsonCodec({self._shape!r})"

    def encode(self, value: T) -> bytes:
        """Return the JSON text of a value, in UTF-8.

        Raises:
            TypeError: The value has parts that JSON cannot keep.
        """
        text = self._encoder.encode(value)
        return msgspec.json.format(text, indent=self._indent) if self._indent else text

    def decode(self, data: bytes) -> T:
        """Return the value of a JSON text."""
        try:
            return self._decoder.decode(data)
        except msgspec.MsgspecError as error:
            name = getattr(self._shape, "__name__", str(self._shape))
            raise StateUnreadableError(f"this is no {name} as JSON: {error}") from error


class TypedState(Generic[T]):
    """The state of every partition as a value of one type. Make one for a handler class.

    The value counts as changed when it is saved, and is stored with the next checkpoint.
    """

    def __init__(
        self,
        shape: type[T],
        *,
        initial: Callable[[], T] | None = None,
        codec: StateCodec[T] | None = None,
    ) -> None:
        """*initial* makes the value of a partition without state; by default *shape* does.

        *codec* is ``JsonCodec(shape)`` by default.
        """
        self._initial = initial or shape
        self._codec = codec or JsonCodec(shape)

    def load(self, context: Stateful) -> T:
        """Return the partition's value.

        Raises:
            StateUnreadableError: There is a state that the codec cannot read.
        """
        data = context.state
        if not data:
            return self._initial()
        try:
            return self._codec.decode(data)
        except StateUnreadableError as error:
            raise StateUnreadableError(
                f"state of partition {context.partition_id!r} ({len(data)} bytes): {error}; give "
                "the shape a default for what is new, or drop the state with `eventproc "
                "checkpoints reset`"
            ) from error

    def save(self, context: Stateful, value: T) -> None:
        """Keep the value with the partition's position.

        Raises:
            StateTooLargeError: It has more bytes than a state may have.
        """
        context.state = self._codec.encode(value)

    @contextmanager
    def edit(self, context: Stateful) -> Iterator[T]:
        """Load the value, and save it at the end of the block; not if the block fails."""
        value = self.load(context)
        yield value
        self.save(context, value)
