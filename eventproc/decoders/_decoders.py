"""The interface of a decoder, and decoders of JSON and MessagePack, which msgspec checks.

Rule: an error of a decoder concerns one event and is permanent: the same bytes would fail again, so
the event is given up without another attempt.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Self, TypeVar, Union, overload

import msgspec

from eventproc._base.settings import checked
from eventproc.errors import ConfigurationError, DecodeError
from eventproc.models import ReceivedEvent

T = TypeVar("T")


class Decoder(ABC, Generic[T]):
    """Converts a body to a value of one type. Subclass it for a format of your own.

    All handlers of a class share one decoder, in several threads, so it keeps no data of an event.
    """

    @property
    def shape(self) -> Any:  # noqa: ANN401 - a type, or a union of some
        """The type of the values, for the column ``value``; ``None``: there is no such column."""
        return None

    @abstractmethod
    def decode(self, body: bytes, event: ReceivedEvent) -> T:
        """Return the value of a body; raise any error if the body cannot be decoded.

        Args:
            body: What to decode. It is the event's body, or a part of it.
            event: The event, for its properties and content type.
        """

    def value_of(self, event: ReceivedEvent) -> T:
        """Return the value of an event.

        Raises:
            DecodeError: the body cannot be decoded; the decoder's error is its cause.
        """
        try:
            return self.decode(event.body, event)
        except MemoryError:
            raise
        except Exception as error:
            kind = getattr(self.shape, "__name__", None) or "value"
            raise DecodeError(
                f"the body of event {event.sequence_number} is no {kind}: {error}"
            ) from error


class FunctionDecoder(Decoder[T]):
    """Calls a function with each body."""

    @checked
    def __init__(self, function: Callable[[bytes], T]) -> None:
        self._function = function

    def decode(self, body: bytes, event: ReceivedEvent) -> T:  # noqa: ARG002 - the body is enough
        """Return what the function returns."""
        return self._function(body)


class _TypedDecoder(Decoder[T]):
    """Base of decoders that check values against a type."""

    _kind: ClassVar[Any]
    """A class of msgspec's decoders."""

    @overload
    def __init__(self, shape: type[T], *, strict: bool = True) -> None: ...
    @overload
    def __init__(self: "_TypedDecoder[Any]", *, strict: bool = True) -> None: ...
    def __init__(self, shape: Any = Any, *, strict: bool = True) -> None:
        try:
            msgspec.json.schema(shape)  # A decoder refuses some types only at its first use.
            self._decode = self._kind(shape, strict=strict).decode
        except TypeError as error:
            raise ConfigurationError(
                f"{shape!r} cannot be the type of decoded values: {error}"
            ) from error
        self._shape = None if shape is Any else shape

    @classmethod
    def any_of(cls, *shapes: type[T], strict: bool = True) -> Self:
        """Return a decoder of several tagged structs, which chooses by the tag in the body."""
        union: Any = Union[shapes]  # noqa: UP007 - of a tuple
        return cls(union, strict=strict)

    @property
    def shape(self) -> Any:  # noqa: ANN401 - a type, or a union of some
        """The type of the values; ``None`` for anything."""
        return self._shape

    def decode(self, body: bytes, event: ReceivedEvent) -> T:  # noqa: ARG002 - the body is enough
        """Return the value of a body."""
        value: T = self._decode(body)
        return value


class JsonDecoder(_TypedDecoder[T]):
    """Decodes JSON, and checks it against a type while it is read.

    Args:
        shape: A ``msgspec.Struct``, a dataclass, a ``TypedDict`` or any other type that msgspec
            supports; for a union of tagged structs use ``any_of``. By default any JSON value, as
            with ``json.loads``.
        strict: False also accepts ``"3"`` for a number and the like.

    Raises:
        ConfigurationError: msgspec cannot decode the type.
    """

    _kind = msgspec.json.Decoder


class MsgpackDecoder(_TypedDecoder[T]):
    """Decodes MessagePack, and checks it against a type; arguments as those of ``JsonDecoder``."""

    _kind = msgspec.msgpack.Decoder
