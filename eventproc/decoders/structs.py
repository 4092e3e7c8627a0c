"""Bodies in JSON or MessagePack, decoded and checked against a type by msgspec."""

from typing import Any, Self, TypeVar, Union, overload

import msgspec

from eventproc.decoders.decoder import Decoder
from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent

T = TypeVar("T")


class _TypedDecoder(Decoder[T]):
    """Base of decoders that check values against a type."""

    @overload
    def __init__(self, shape: type[T], *, strict: bool = True) -> None: ...
    @overload
    def __init__(self: "_TypedDecoder[Any]", *, strict: bool = True) -> None: ...
    def __init__(self, shape: Any = Any, *, strict: bool = True) -> None:
        try:
            msgspec.json.schema(shape)  # A decoder refuses some types only at its first use.
            self._decode = self._function(shape, strict=strict)
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

    @staticmethod
    def _function(shape: Any, *, strict: bool) -> Any:  # noqa: ANN401 - a method of a decoder
        raise NotImplementedError


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

    @staticmethod
    def _function(shape: Any, *, strict: bool) -> Any:  # noqa: ANN401 - a method of a decoder
        return msgspec.json.Decoder(shape, strict=strict).decode


class MsgpackDecoder(_TypedDecoder[T]):
    """Decodes MessagePack, and checks it against a type; arguments as those of ``JsonDecoder``."""

    @staticmethod
    def _function(shape: Any, *, strict: bool) -> Any:  # noqa: ANN401 - a method of a decoder
        return msgspec.msgpack.Decoder(shape, strict=strict).decode
