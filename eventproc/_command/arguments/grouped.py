"""Lets a verb take groups of options: dataclasses, and settings of the config.

typer reads the parameters of a function, one for each option. A verb instead names each group of
options once, as a parameter whose type is a dataclass; its fields are the options.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from datetime import timedelta
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, Final, TypeAlias, get_args, get_origin, get_type_hints

import typer

from eventproc._base.settings import Within, check_value
from eventproc._command.arguments.modules import parse_placement
from eventproc._command.arguments.option_names import OPTIONS
from eventproc._core.option_values import parse_duration, parse_position
from eventproc._core.placement.placement import Placement
from eventproc._delivery.config import EventProcessorConfig
from eventproc.models import EventPosition

DEFAULTS: Final = EventProcessorConfig()

Verb: TypeAlias = Callable[..., int | Coroutine[Any, Any, int | None] | None]
"""A verb's function; it returns the exit code, or ``None`` for success."""


@dataclass(frozen=True)
class _Text:
    """How values of a type are given as text."""

    metavar: str
    parse: Callable[[str, str], object]
    """Gets the option and its text."""

    show: Callable[[Any], str]


_TEXT_BY_TYPE: Final[Mapping[object, _Text]] = {
    timedelta: _Text("DURATION", parse_duration, lambda span: f"{span.total_seconds():g}s"),
    EventPosition: _Text("POSITION", parse_position, lambda _: "earliest"),
    Placement: _Text("RULE", parse_placement, lambda placement: str(placement.name)),
}


class ConfigOptions:
    """In ``Annotated[EventProcessorConfig, ...]``: options for some settings of a config.

    Type and default of an option are those of the setting.
    """

    def __init__(self, options: Mapping[str, Any], defaults: Any = DEFAULTS) -> None:  # noqa: ANN401
        """Give the option of each setting; ``checkpoint_policy.interval`` is one of a policy.

        *defaults* is the config without options: a dataclass.
        """
        self._options = options
        self._defaults = defaults

    def expand(self) -> "_Group":
        """Return the options, and how their values become a config."""
        policies = {setting.partition(".")[0] for setting in self._options if "." in setting}
        groups = {"": self._defaults} | {f"{p}.": getattr(self._defaults, p) for p in policies}
        kinds = {
            f"{prefix}{name}": kind
            for prefix, group in groups.items()
            for name, kind in get_type_hints(type(group)).items()
        }
        options = {
            setting: _option(
                setting.replace(".", "_"),
                Annotated[kinds[setting], info],
                attrgetter(setting)(self._defaults),
                OPTIONS[setting.rpartition(".")[2]],
            )
            for setting, info in self._options.items()
        }
        return _Group(options, self._config)

    def _config(self, values: Mapping[str, Any]) -> object:
        defaults, given = self._defaults, dict[str, Any]()
        interval = values.get("load_balancing_interval")
        if interval is not None:
            given["rebalance_interval"] = min(interval, defaults.rebalance_interval)
        for setting, value in values.items():
            policy, dot, name = setting.rpartition(".")
            if dot:
                former = given.get(policy, getattr(defaults, policy))
                given[policy] = replace(former, **{name: value})
            else:
                given[name] = value
        changed: object = replace(defaults, **given)
        return changed


@dataclass(frozen=True)
class _Option:
    """One option of a command."""

    parameter: Parameter
    """For typer."""

    parse: Callable[[Any], object] = lambda value: value
    """Turns typer's value into the verb's."""


@dataclass(frozen=True)
class _Group:
    """The options behind one parameter of a verb."""

    options: Mapping[str, _Option]
    build: Callable[[Mapping[str, Any]], object]
    """Makes the parameter's value from the values of the options, by the same keys."""

    def value(self, given: Mapping[str, Any]) -> object:
        """Return the parameter's value, from what typer has for the options."""
        return self.build({k: o.parse(given[o.parameter.name]) for k, o in self.options.items()})


def with_groups(verb: Verb) -> Callable[..., int | None]:
    """Return a function for typer that has a parameter for each option, and calls *verb*.

    A verb that is a coroutine function runs in an event loop. Without a result it has succeeded.
    """
    groups = {
        each.name: _group(each) for each in signature(verb, eval_str=True).parameters.values()
    }

    @wraps(verb)
    def command(**given: Any) -> int | None:  # noqa: ANN401 - the values of all options
        result = verb(**{name: group.value(given) for name, group in groups.items()})
        return asyncio.run(result) if isinstance(result, Coroutine) else result

    parameters = [o.parameter for group in groups.values() for o in group.options.values()]
    parameters.sort(key=lambda each: each.default is not Parameter.empty)  # required ones first
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


def takes_duration(command: Callable[..., int | None]) -> bool:
    """Whether an option of what ``with_groups`` returned is a duration."""
    infos = [get_args(each.annotation)[1] for each in signature(command).parameters.values()]
    return _TEXT_BY_TYPE[timedelta].metavar in {info.metavar for info in infos}


def _group(parameter: Parameter) -> _Group:
    kind, *extra = get_args(parameter.annotation) or [parameter.annotation]
    if extra and isinstance(extra[0], ConfigOptions):
        return extra[0].expand()
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind, include_extras=True)
        options = {
            field.name: _option(
                field.name,
                hints[field.name],
                Parameter.empty if field.default is MISSING else field.default,
            )
            for field in fields(kind)
        }
        return _Group(options, lambda values: kind(**values))
    option = _option(parameter.name, parameter.annotation, parameter.default)
    return _Group({"": option}, lambda values: values[""])


def _option(name: str, annotation: object, default: object, option_name: str = "") -> _Option:
    """Return an option of this type; a duration, a position or a placement is text to typer.

    The type may have bounds, as that of a setting has: ``Annotated[float, Within(above=0),
    typer.Option()]``. A value out of bounds, or a number that is not finite, is refused.
    """
    kind, *extra = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    bounds = [each for each in extra if isinstance(each, Within)]
    info = copy(next((e for e in extra if not isinstance(e, Within)), typer.Option()))
    if option_name:
        info.default = option_name  # where typer keeps the name
    named = info.default  # where typer keeps the name, if it is given
    option = named if isinstance(named, str) else f"--{name.replace('_', '-')}"
    given_kind, *others = [each for each in get_args(kind) or [kind] if each is not NoneType]
    text = None if others else _TEXT_BY_TYPE.get(given_kind)
    parse: Callable[[Any], object] | None = None
    if bounds:
        parse = partial(_parse_optional, partial(check_value, option, annotation=annotation))
    if text is not None:
        parse = partial(_parse_text, partial(text.parse, option), parse)
        if given_kind is not kind:
            parse = partial(_parse_optional, parse)
        kind, info.metavar = str, text.metavar
        default = "" if default is None else text.show(default)
    elif given_kind in (int, float) and info.metavar is None:
        info.metavar = "N"
    if default in (None, ""):
        info.show_default = False
    annotation = Annotated[kind, info]
    parameter = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    return _Option(parameter) if parse is None else _Option(parameter, parse)


def _parse_text(
    parse: Callable[[str], object], check: Callable[[object], object] | None, value: str
) -> object:
    parsed = parse(value)
    return parsed if check is None else check(parsed)


def _parse_optional(parse: Callable[[Any], object], value: object) -> object:
    return None if value in (None, "") else parse(value)
