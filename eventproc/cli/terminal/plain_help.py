"""Help in which the values of options and arguments are written as a person would write them."""

import re
from typing import Any, Final

from typer.core import TyperCommand

_TYPE: Final = re.compile(r" <(\w+)>$")
"""typer's name of a type, behind an argument that says itself what to give."""

_CHOICES: Final = re.compile(r" <([\w|-]+)>$")

_BRACES: Final = re.compile(r"\{(.*)\}")

_RANGE: Final = re.compile(r"\b(?:(\d+)<=)?x(?:<=(\d+)|>=(\d+))(?=[];])")


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
