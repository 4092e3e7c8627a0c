"""The help of a verb: values as a person would write them, many options under headings."""

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from typer.core import TyperCommand

_TYPE: Final = re.compile(r" <(\w+)>$")
"""typer's name of a type, behind an argument that says itself what to give."""

_CHOICES: Final = re.compile(r" <([\w|-]+)>$")

_BRACES: Final = re.compile(r"\{(.*)\}")

_RANGE: Final = re.compile(r"\b(?:(\d+)<=)?x(?:<=(\d+)|>=(\d+))(?=[];])")


_PREFIX: Final = "EVENTPROC_"

_SIMILAR: Final = 0.88
"""How much of two names is the same, if one is a slip. ``STORAGE`` is none of ``STORE``."""

_OF_A_WORKER: Final = "EVENTPROC_WORKER"
"""The variable that a supervisor sets; it has almost the name of ``--workers``."""

HEADINGS: Final[Mapping[str, Sequence[str]]] = {
    "Event hub": (
        *("--eventhub", "--consumer-group", "--connection-string", "--namespace"),
        *("--custom-endpoint", "--transport", "--capture"),
    ),
    "Resources": ("--group", "--resources", "--resources-from", "--every"),
    "Store": (
        *("--store", "--create-container", "--storage-connection-string", "--storage-account"),
    ),
    "Process and workers": (
        *("--workers", "--owner-id", "--shutdown-timeout", "--stop-at-eof"),
        *("--deployment-id", "--static-membership", "--roster"),
    ),
    "Health and logs": (
        *("--http", "--stall-timeout", "--failover-timeout", "--log-format", "--log-level"),
    ),
    "Delivery": (
        *("--start", "--recreated-hub", "--batch-size", "--batch-min", "--batch-wait"),
        *("--checkpoint-events", "--checkpoint-interval", "--key-concurrency", "--key-property"),
        *("--rate", "--partition-rate"),
    ),
    "Events that fail": ("--attempts", "--deliveries", "--give-up", "--dead-letters"),
    "Sharing in the group": (
        *("--strategy", "--placement", "--weight", "--capacity", "--ordinal"),
        *("--interval", "--expiration"),
    ),
    "Connections to Azure": ("--ca-bundle", "--proxy"),
}
"""The options under each heading, in the order of the help."""

OTHERS: Final = "Other options"
"""The last heading, for options that are under none of these."""


class PlainCommand(TyperCommand):
    """A verb with such a help."""

    # ``Any``: typer has a click of its own, without public types.
    def rows(self, ctx: Any) -> list[tuple[Any, tuple[str, str]]]:  # noqa: ANN401
        """Return each argument and option that is shown, with its two columns."""
        return [
            (parameter, (_plain_names(row[0]), _RANGE.sub(_plain_range, row[1])))
            for parameter in self.get_params(ctx)
            if (row := parameter.get_help_record(ctx)) is not None
        ]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Return the words of the usage line; a required argument is in no braces."""
        return [_BRACES.sub(r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the arguments, then the options."""
        rows = self.rows(ctx)
        for heading, kind in (("Arguments", "argument"), ("Options", "option")):
            shown = [row for parameter, row in rows if parameter.param_type_name == kind]
            if shown:
                with formatter.section(heading):
                    formatter.write_dl(shown)


def _plain_names(names: str) -> str:
    return _CHOICES.sub(r" \1", _TYPE.sub("", names))


def _plain_range(found: re.Match[str]) -> str:
    return f"{found[1]} to {found[2]}" if found[1] else f"{found[3]} or more"


def variable_of(option: str) -> str:
    """Return the environment variable of an option: ``EVENTPROC_`` and its name."""
    return f"{_PREFIX}{option.strip('-').replace('-', '_').upper()}"


def misspelt(names: Iterable[str], known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Return each variable that is not known, and the one with almost its name."""
    options = [name.removeprefix(_PREFIX) for name in known]
    for name in names:
        if name.startswith(_PREFIX) and name not in known:
            found = get_close_matches(name.removeprefix(_PREFIX), options, n=1, cutoff=_SIMILAR)
            yield from ((name, f"{_PREFIX}{option}") for option in found)


class HeadedCommand(PlainCommand):
    """A verb whose help has ``HEADINGS``; each of its options may be a variable, too."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401
        """Take the arguments of typer's command."""
        super().__init__(*arguments, **settings)
        for parameter in self.params:
            if parameter.param_type_name == "option" and parameter.envvar is None:
                parameter.envvar = variable_of(parameter.opts[0])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Warn of misspelt variables, and read the command line."""
        known = {_OF_A_WORKER}
        for parameter in self.params:
            variables = parameter.envvar or ()
            known.update([variables] if isinstance(variables, str) else variables)
        for name, meant in misspelt(os.environ, known):
            print(f"warning: {name} is not read; did you mean {meant}?", file=sys.stderr)
        return super().parse_args(ctx, args)

    # ``Any``: typer has a click of its own, without public types.
    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the arguments, and the options under their headings."""
        rows: dict[str, tuple[str, str]] = {}
        arguments: list[tuple[str, str]] = []
        for parameter, row in self.rows(ctx):
            if parameter.param_type_name == "argument":
                arguments.append(row)
            else:
                rows[parameter.opts[0]] = row
        sections = {"Arguments": arguments}
        for heading, options in HEADINGS.items():
            sections[heading] = [rows.pop(option) for option in options if option in rows]
        sections[OTHERS] = list(rows.values())
        for heading, shown in sections.items():
            if shown:
                with formatter.section(heading):
                    formatter.write_dl(shown)
