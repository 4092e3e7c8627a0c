"""Checks settings against their annotations.

A settings class calls ``check_settings(self)`` first in its ``__post_init__``; a function whose
arguments are settings is decorated with ``checked``. Text that is the value of an enum's member is
converted to the member; nothing else is converted. Why not a library: the table of
``docs/decisions/README.md``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from enum import Enum
from functools import cache, wraps
from inspect import Parameter, signature
from math import isfinite
from reprlib import Repr
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from eventproc.errors import ConfigurationError

P = ParamSpec("P")
R = TypeVar("R")

_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = 80


@dataclass(frozen=True, slots=True)
class Within:
    """In ``Annotated``: the bounds of a number or a ``timedelta``."""

    least: float | timedelta | None = None
    above: float | timedelta | None = None
    most: float | timedelta | None = None

    def fits(self, value: Any) -> bool:  # noqa: ANN401 - of the type that the bounds have
        """Whether the value lies within the bounds."""
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
        )

    def __str__(self) -> str:
        if self.least is not None and self.most is not None:
            return f"{value_text(self.least)} to {value_text(self.most)}"
        parts = [
            text
            for bound, text in (
                (self.least, f"{value_text(self.least)} or more"),
                (self.above, f"more than {value_text(self.above)}"),
                (self.most, f"{value_text(self.most)} or less"),
            )
            if bound is not None
        ]
        return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class Wanted:
    """In ``Annotated``: what an error message asks for, if the type's name says too little."""

    text: str


SECRET: Final = object()
"""In ``Annotated``: messages do not show the value. For a dataclass field, use ``repr=False``."""

Count: TypeAlias = Annotated[int, Within(least=1)]
Span: TypeAlias = Annotated[timedelta, Within(least=timedelta(0))]
PositiveSpan: TypeAlias = Annotated[timedelta, Within(above=timedelta(0))]


def value_text(value: object) -> str:
    """Return a value for a message: a ``timedelta`` as ``0.5 s``, anything else as its ``repr``."""
    return f"{value.total_seconds():g} s" if isinstance(value, timedelta) else _SHORT.repr(value)


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of values that an annotation allows."""

    wanted: str
    """The values, for a message."""

    fits: Callable[[Any], bool]
    """Whether a value is of this kind, whatever its bounds."""

    bounds: tuple[Within, ...] = ()
    wanted_in_bounds: str = ""
    """For a message about a value that is of this kind, and out of bounds."""

    member_by_text: Mapping[str, Enum] = field(default_factory=dict)
    """Members that may be given as text."""

    is_secret: bool = False


def check_settings(settings: object) -> None:
    """Check each field of a dataclass, which may be frozen, against its annotation.

    Raises:
        ConfigurationError: a value has another type or is out of bounds; the message names the
            setting, the value and the allowed values.
    """
    cls: Any = type(settings)
    for name, kinds in _kinds_by_field(cls).items():
        value = getattr(settings, name)
        taken = _take(name, value, kinds)
        if taken is not value:
            object.__setattr__(settings, name, taken)


def check_value(name: str, value: object, annotation: object) -> object:
    """Return the value of one setting, which is not part of a dataclass, as its annotation allows.

    Raises:
        ConfigurationError: as ``check_settings`` does.
    """
    return _take(name, value, _kinds(annotation))


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of each call against the annotations of the parameters.

    Annotations that are strings are not checked. The call raises ``ConfigurationError`` as
    ``check_settings`` does.
    """
    parameters = signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            given = parameters.bind(*args, **kwargs)
        except TypeError:  # The function's own error is better: it has the function's name.
            return function(*args, **kwargs)
        for name, kinds in _kinds_by_parameter(function).items():
            if name in given.arguments:
                given.arguments[name] = _take(name, given.arguments[name], kinds)
        return function(*given.args, **given.kwargs)

    return call


def _take(name: str, value: Any, kinds: list[_Kind]) -> object:  # noqa: ANN401 - a setting is anything
    """Return the value, or the enum member that it names."""
    wanted = ""
    for kind in kinds:
        taken = kind.member_by_text.get(value, value) if isinstance(value, str) else value
        if kind.fits(taken):
            if all(bound.fits(taken) for bound in kind.bounds):
                return taken
            wanted = wanted or kind.wanted_in_bounds
    raise ConfigurationError(
        f"give {wanted or _wanted(kinds)}",
        setting=name,
        value=f"a {type(value).__name__}" if _has_secret(kinds) else value_text(value),
    )


def _allow(kinds: list[_Kind], value: object) -> bool:
    """Whether a part of a container may have this value."""
    return any(k.fits(value) and all(bound.fits(value) for bound in k.bounds) for k in kinds)


def _wanted(kinds: list[_Kind]) -> str:
    return _joined(dict.fromkeys(kind.wanted for kind in kinds))


def _has_secret(kinds: list[_Kind]) -> bool:
    return any(kind.is_secret for kind in kinds)


@cache
def _kinds_by_field(cls: type[Any]) -> Mapping[str, list[_Kind]]:
    return {
        each.name: _kinds(each.type if each.repr else Annotated[each.type, SECRET])
        for each in fields(cls)
        if each.init
    }


@cache
def _kinds_by_parameter(function: Callable[..., object]) -> Mapping[str, list[_Kind]]:
    variable = {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}
    return {
        name: _kinds(parameter.annotation)
        for name, parameter in signature(function).parameters.items()
        if parameter.kind not in variable and parameter.annotation is not Parameter.empty
    }


def _kinds(annotation: Any) -> list[_Kind]:  # noqa: ANN401 - annotations are anything
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return [_annotated(kind, arguments[1:]) for kind in _kinds(arguments[0])]
    if origin in {Union, UnionType}:
        return [kind for each in arguments for kind in _kinds(each)]
    if origin is Literal:
        return [_literal(arguments)]
    if isinstance(origin, type):
        return [_generic(origin, arguments)]
    return [_class(annotation if isinstance(annotation, type) else object)]


def _annotated(kind: _Kind, metadata: tuple[object, ...]) -> _Kind:
    bounds = tuple(each for each in metadata if isinstance(each, Within))
    limits = " and ".join(map(str, bounds))
    texts = [each.text for each in metadata if isinstance(each, Wanted)]
    wanted = f"{kind.wanted} of {limits}" if bounds else kind.wanted
    return replace(
        kind,
        wanted=texts[0] if texts else wanted,
        bounds=kind.bounds + bounds,
        wanted_in_bounds=texts[0] if texts else limits or kind.wanted_in_bounds,
        is_secret=kind.is_secret or SECRET in metadata,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


_PLAIN: Final = {
    bool: _Kind("True or False", lambda value: isinstance(value, bool)),
    int: _Kind("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool)),
    float: _Kind("a number", _is_number),
    str: _Kind("text", lambda value: isinstance(value, str)),
    NoneType: _Kind("None", lambda value: value is None),
}


def _literal(values: Iterable[object]) -> _Kind:
    return _Kind(
        _joined(map(repr, values)),
        lambda value: any(type(value) is type(each) and value == each for each in values),
    )


def _class(cls: type) -> _Kind:
    if cls in _PLAIN:
        return _PLAIN[cls]
    if cls is object or (
        getattr(cls, "_is_protocol", False) and not getattr(cls, "_is_runtime_protocol", False)
    ):
        return _Kind("anything", lambda _: True)
    if issubclass(cls, Enum):
        by_text = {each.value: each for each in cls if isinstance(each.value, str)}
        wanted = f"{_joined(repr(each.value) for each in cls)} ({cls.__name__})"
        return _Kind(wanted, lambda value: isinstance(value, cls), member_by_text=by_text)
    return _Kind(_with_article(cls.__name__), lambda value: isinstance(value, cls))


def _generic(origin: Any, arguments: tuple[Any, ...]) -> _Kind:  # noqa: ANN401 - a class
    if origin is type:
        base = arguments[0]
        return _Kind(
            f"a subclass of {base.__name__}",
            lambda value: isinstance(value, type) and issubclass(value, base),
        )
    if origin.__name__ == "Callable":
        return _Kind("a function", callable)
    is_mapping = issubclass(origin, Mapping)
    if not is_mapping and not issubclass(origin, Sequence | AbstractSet):
        return _class(origin)
    elements = _kinds(arguments[0])
    contents = _kinds(arguments[1]) if is_mapping else []
    wanted = (
        f"a mapping from {_wanted(elements)} to {_wanted(contents)}"
        if is_mapping
        else f"{_with_article(origin.__name__)} in which each is {_wanted(elements)}"
    )

    def fits(value: Any) -> bool:  # noqa: ANN401 - a setting is anything
        return (
            isinstance(value, origin)
            and not isinstance(value, str | bytes)
            and all(_allow(elements, each) for each in value)
            and (not is_mapping or all(_allow(contents, value[key]) for key in value))
        )

    return _Kind(wanted, fits, is_secret=_has_secret(elements + contents))


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeio' else 'a'} {name}"


def _joined(texts: Iterable[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} or {last}" if others else last
