"""A handler's state as a value of a type, instead of bytes.

Rule 1: a state that cannot be read is an error and never replaced by an empty one: a count that
restarts at zero in the middle of a partition would be wrong, and nothing would show it.
Rule 2: a missing field takes its default and an unknown field is ignored, so a type may get new
fields while the group runs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

import msgspec

from eventproc.errors import ConfigurationError, StateUnreadableError

__all__ = ["JsonCodec", "StateCodec", "Stateful", "TypedState"]

T = TypeVar("T")


class Stateful(Protocol):
    """An object with a state: the context of a handler, of coroutines or of ordinary functions."""

    @property
    def partition_id(self) -> str:
        """The partition's id."""

    @property
    def state(self) -> bytes | None:
        """The handler's own state."""

    @state.setter
    def state(self, value: bytes | None) -> None: ...


class StateCodec(ABC, Generic[T]):
    """Converts values to bytes and back."""

    @abstractmethod
    def encode(self, value: T) -> bytes:
        """Return the bytes of a value; never empty, because empty bytes mean no state."""

    @abstractmethod
    def decode(self, data: bytes) -> T:
        """Return the value of bytes.

        Raises:
            StateUnreadableError: this codec cannot read them.
        """


class JsonCodec(StateCodec[T]):
    """Converts dataclasses, and the types of their fields, to JSON.

    Fields may be numbers, text, bytes (written as base64), dates and times, decimals, enums, lists,
    sets, tuples, dictionaries and dataclasses. JSON that is read is checked against the type. Equal
    values give equal bytes.
    """

    def __init__(self, shape: type[T], *, indent: int = 0) -> None:
        """Refuse a type that JSON cannot represent. *indent*: spaces, for readable output."""
        self._shape = shape
        self._indent = indent
        try:
            self._encoder = msgspec.json.Encoder(order="deterministic")
            self._decoder = msgspec.json.Decoder(shape)
            msgspec.json.schema(shape)  # Refuses types that the decoder refuses only when used.
        except TypeError as error:
            raise ConfigurationError(f"{shape!r} cannot be kept as JSON: {error}") from error

    def __repr__(self) -> str:
        return f"JsonCodec({self._shape!r})"

    def encode(self, value: T) -> bytes:
        """Return the JSON text of a value, in UTF-8.

        Raises:
            TypeError: the value has parts that JSON cannot represent, or that are not of their
                type.
        """
        try:
            text = self._encoder.encode(value)
        except TypeError:  # Keys that are no text; converting the whole value takes longer.
            built_in = msgspec.to_builtins(value, str_keys=True, order="deterministic")
            text = self._encoder.encode(built_in)
        try:
            self._decoder.decode(text)
        except msgspec.MsgspecError as error:
            raise TypeError(
                f"{self._name} cannot be read again as its type, so it is not stored: {error} "
                "(NaN and infinity are written as null)"
            ) from error
        return msgspec.json.format(text, indent=self._indent) if self._indent else text

    def decode(self, data: bytes) -> T:
        """Return the value of a JSON text."""
        try:
            return self._decoder.decode(data)
        except (msgspec.MsgspecError, RecursionError) as error:  # the latter: nested too deeply
            raise StateUnreadableError(f"this is not a {self._name} as JSON: {error}") from error

    @property
    def _name(self) -> str:
        return getattr(self._shape, "__name__", str(self._shape))


class TypedState(Generic[T]):
    """The state of every partition as a value of one type. Make one for a handler class.

    A value is changed by ``save``, and stored with the next checkpoint.
    """

    def __init__(
        self,
        shape: type[T],
        *,
        initial: Callable[[], T] | None = None,
        codec: StateCodec[T] | None = None,
    ) -> None:
        """Choose type, initial value and codec.

        Args:
            shape: The type of the values.
            initial: Makes the value of a partition without state; by default ``shape``.
            codec: Converts values to bytes and back; by default ``JsonCodec(shape)``.
        """
        self._initial = initial or shape
        self._codec = codec or JsonCodec(shape)

    def load(self, context: Stateful) -> T:
        """Return the partition's value.

        Raises:
            StateUnreadableError: the codec cannot read the partition's state.
        """
        data = context.state
        if not data:
            return self._initial()
        try:
            return self._codec.decode(data)
        except StateUnreadableError as error:
            raise StateUnreadableError(
                f"state of partition {context.partition_id!r} ({len(data)} bytes): {error}; give "
                "new fields of the type a default, or remove the state with `eventproc "
                "checkpoints reset`"
            ) from error

    def save(self, context: Stateful, value: T) -> None:
        """Set the partition's state to the value.

        Raises:
            StateTooLargeError: the value has more bytes than a state may have.
        """
        context.state = self._codec.encode(value)

    @contextmanager
    def edit(self, context: Stateful) -> Iterator[T]:
        """Load the value, and save it at the end of the block; not if the block fails."""
        value = self.load(context)
        yield value
        self.save(context, value)
