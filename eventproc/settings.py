"""Checks settings against their annotations.

A settings class calls ``check_settings(self)`` first in its ``__post_init__``; a function whose
arguments are settings is decorated with ``checked``. Text that is the value of an enum's member is
converted to the member; nothing else is converted. Why not a library: the table of
``docs/decisions/README.md``.
"""

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import Enum
from functools import cache, wraps
from inspect import Parameter, signature
from math import isfinite
from reprlib import Repr
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
            return f"{shown(self.least)} to {shown(self.most)}"
        parts = [
            text
            for bound, text in (
                (self.least, f"{shown(self.least)} or more"),
                (self.above, f"more than {shown(self.above)}"),
                (self.most, f"{shown(self.most)} or less"),
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


def shown(value: object) -> str:
    """Return a value for a message: a ``timedelta`` as ``0.5 s``, anything else as its ``repr``."""
    return f"{value.total_seconds():g} s" if isinstance(value, timedelta) else _SHORT.repr(value)


class _UnfitError(Exception):
    """A value does not fit its annotation."""

    def __init__(self, wanted: str = "") -> None:
        super().__init__(wanted)
        self.wanted = wanted
        """The bounds, if the value is of the right type: then a message need not name that."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """The values that one annotation allows."""

    wanted: str
    """The allowed values, for a message."""

    take: Callable[[Any], object]
    """Returns the value, or the enum member that it names; raises ``_UnfitError``."""

    is_secret: bool = False


def check_settings(settings: object) -> None:
    """Check each field of a dataclass, which may be frozen, against its annotation.

    Raises:
        ConfigurationError: a value has another type or is out of bounds; the message names the
            setting, the value and the allowed values.
    """
    cls: Any = type(settings)
    for name, rule in _rules_of_class(cls).items():
        value = getattr(settings, name)
        taken = _take(name, value, rule)
        if taken is not value:
            object.__setattr__(settings, name, taken)


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
        for name, rule in _rules_of_function(function).items():
            if name in given.arguments:
                given.arguments[name] = _take(name, given.arguments[name], rule)
        return function(*given.args, **given.kwargs)

    return call


def _take(name: str, value: object, rule: _Rule) -> object:
    try:
        return rule.take(value)
    except _UnfitError as error:
        described = f"a {type(value).__name__}" if rule.is_secret else shown(value)
        raise ConfigurationError(
            f"give {error.wanted or rule.wanted}", setting=name, value=described
        ) from None


@cache
def _rules_of_class(cls: type[Any]) -> Mapping[str, _Rule]:
    return {
        each.name: _rule(each.type if each.repr else Annotated[each.type, SECRET])
        for each in fields(cls)
        if each.init
    }


@cache
def _rules_of_function(function: Callable[..., object]) -> Mapping[str, _Rule]:
    variable = {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}
    return {
        name: _rule(parameter.annotation)
        for name, parameter in signature(function).parameters.items()
        if parameter.kind not in variable and parameter.annotation is not Parameter.empty
    }


def _rule(annotation: Any) -> _Rule:  # noqa: ANN401 - annotations are anything
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(*arguments)
    if origin in {Union, types.UnionType}:
        return _union([_rule(each) for each in arguments])
    if annotation is None or annotation is type(None):
        return _literal(None)
    if origin is Literal:
        return _literal(*arguments)
    if isinstance(origin, type):
        return _generic(origin, arguments)
    return _class(annotation if isinstance(annotation, type) else object)


def _only(fits: Callable[[Any], bool]) -> Callable[[Any], object]:
    def take(value: object) -> object:
        if not fits(value):
            raise _UnfitError
        return value

    return take


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _literal(*values: object) -> _Rule:
    wanted = _joined(repr(each) for each in values)
    return _Rule(wanted, _only(lambda value: type(value) in map(type, values) and value in values))


_PLAIN: Final[Mapping[type, tuple[str, Callable[[Any], bool]]]] = {
    bool: ("True or False", lambda value: isinstance(value, bool)),
    int: ("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool)),
    float: ("a number", _is_number),
    str: ("text", lambda value: isinstance(value, str)),
    timedelta: ("a timedelta", lambda value: isinstance(value, timedelta)),
    datetime: ("a datetime", lambda value: isinstance(value, datetime)),
}


def _class(cls: type) -> _Rule:
    if cls is object:
        return _Rule("anything", lambda value: value)
    if issubclass(cls, Enum):
        return _enum(cls)
    if cls in _PLAIN:
        wanted, fits = _PLAIN[cls]
        return _Rule(wanted, _only(fits))
    if getattr(cls, "_is_protocol", False) and not getattr(cls, "_is_runtime_protocol", False):
        return _Rule("anything", lambda value: value)
    return _Rule(_with_article(cls.__name__), _only(lambda value: isinstance(value, cls)))


def _enum(cls: type[Enum]) -> _Rule:
    def take(value: object) -> object:
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            for member in cls:
                if member.value == value:
                    return member
        raise _UnfitError

    return _Rule(f"{_joined(repr(m.value) for m in cls)} ({cls.__name__})", take)


def _union(rules: list[_Rule]) -> _Rule:
    def take(value: object) -> object:
        wanted = ""
        for rule in rules:
            try:
                return rule.take(value)
            except _UnfitError as error:
                wanted = wanted or error.wanted
        raise _UnfitError(wanted)

    return _Rule(
        _joined(dict.fromkeys(rule.wanted for rule in rules)),
        take,
        is_secret=any(rule.is_secret for rule in rules),
    )


def _annotated(annotation: object, *metadata: object) -> _Rule:
    inner = _rule(annotation)
    bounds = [each for each in metadata if isinstance(each, Within)]
    limits = " and ".join(map(str, bounds))
    wanted = f"{inner.wanted} of {limits}" if bounds else inner.wanted
    for each in metadata:
        if isinstance(each, Wanted):
            limits = wanted = each.text

    def take(value: object) -> object:
        taken = inner.take(value)
        if not all(bound.fits(taken) for bound in bounds):
            raise _UnfitError(limits)
        return taken

    return _Rule(wanted, take, is_secret=inner.is_secret or SECRET in metadata)


def _generic(origin: type, arguments: tuple[Any, ...]) -> _Rule:
    if origin is type:
        (base,) = arguments
        return _Rule(
            f"a subclass of {base.__name__}",
            _only(lambda value: isinstance(value, type) and issubclass(value, base)),
        )
    if origin.__name__ == "Callable":
        return _Rule("a function", _only(callable))
    if issubclass(origin, Mapping):
        key, content = map(_rule, arguments)
        return _container(
            origin,
            f"a mapping from {key.wanted} to {content.wanted}",
            lambda value: [(key, each) for each in value] + [(content, value[k]) for k in value],
            is_secret=key.is_secret or content.is_secret,
        )
    if issubclass(origin, Sequence | AbstractSet):
        element = _rule(arguments[0])
        return _container(
            origin,
            f"{_with_article(origin.__name__)} in which each is {element.wanted}",
            lambda value: [(element, each) for each in value],
            is_secret=element.is_secret,
        )
    return _class(origin)


def _container(
    origin: type,
    wanted: str,
    parts: Callable[[Any], list[tuple[_Rule, object]]],
    *,
    is_secret: bool,
) -> _Rule:
    def take(value: object) -> object:
        if not isinstance(value, origin) or isinstance(value, str | bytes):
            raise _UnfitError
        for rule, part in parts(value):
            rule.take(part)
        return value

    return _Rule(wanted, take, is_secret=is_secret)


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeio' else 'a'} {name}"


def _joined(texts: Iterable[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} or {last}" if others else last
