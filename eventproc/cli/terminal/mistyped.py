"""A verb that does not exist: the error names those of a similar name, wherever they are."""

import difflib
from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup


class SuggestingGroup(TyperGroup):
    """Verbs, with a suggestion for one that does not exist: typer's own looks at one level only."""

    # ``Any``: typer has a click of its own, without public types.
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """Return the verb of a command line; the error for an unknown one has a suggestion."""
        name = args[0]
        if self.get_command(ctx, name) is None:
            paths = list(_paths(ctx.find_root()))
            close = difflib.get_close_matches(name, {path[-1] for path in paths})
            if meant := [f"`{' '.join(path)}`" for path in paths if path[-1] in close[:1]]:
                ctx.fail(f"No such command {name!r}. Did you mean {' or '.join(meant)}?")
        return super().resolve_command(ctx, args)


def _paths(root: Any) -> Iterator[tuple[str, ...]]:  # noqa: ANN401 - a context of typer's click
    """Yield the words of each verb."""
    for name, verb in root.command.commands.items():
        yield (root.info_name, name)
        for below in getattr(verb, "commands", ()):
            yield (root.info_name, name, below)
