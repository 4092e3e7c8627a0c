"""Hints for a verb that does not exist: the verb that whoever typed it is likely to mean."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from typer.core import TyperGroup

_TO_MOVE: Final = "`eventproc checkpoints reset` moves the positions of a group back or forward"
_TO_COPY: Final = "`eventproc checkpoints export` and `import` copy a group to another store"
_TO_SEE: Final = "`eventproc status` shows a group"
_TO_CHECK: Final = (
    "a process that has --http PORT serves /live, /ready and /metrics, and `eventproc status` "
    "shows the whole group"
)
_NO_DELETION: Final = "no verb deletes the records of a group: docs/operations.md says how to"
_NO_READER: Final = (
    "no verb shows the events of a hub: docs/operations.md says how to; `eventproc dead-letters "
    "show` shows those that were given up"
)

MEANT: Final[Mapping[str, str]] = {
    "replay": (
        "`eventproc checkpoints reset` delivers the events since a time or a number again, and "
        "`eventproc dead-letters replay` those that were given up"
    ),
    **dict.fromkeys(("rewind", "seek", "skip", "offsets", "position"), _TO_MOVE),
    **dict.fromkeys(("backup", "copy", "migrate", "move", "restore"), _TO_COPY),
    **dict.fromkeys(("describe", "groups", "ls", "members", "owners", "ps", "top"), _TO_SEE),
    **dict.fromkeys(("health", "live", "metrics", "ping", "ready"), _TO_CHECK),
    **dict.fromkeys(("clean", "delete", "forget", "purge", "remove", "rm"), _NO_DELETION),
    **dict.fromkeys(("cat", "consume", "event", "events", "peek", "read", "tail"), _NO_READER),
    **dict.fromkeys(
        ("start", "serve", "worker"), "`eventproc run` runs your handler, `eventproc --help` more"
    ),
    "unpause": "`eventproc resume` ends a pause",
    "stop": "SIGTERM stops a process, and `eventproc pause` the delivery in a whole group",
    "create": "`eventproc store init` creates what a store needs",
    **dict.fromkeys(("dlq", "deadletter", "letters"), "`eventproc dead-letters` shows them"),
}
"""By the name that does not exist."""


class HintingGroup(TyperGroup):
    """Verbs, with a hint for one that does not exist."""

    # ``Any``: typer has a click of its own, without public types.
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """Return the verb of a command line; the error for an unknown one has a hint."""
        name = args[0]
        if self.get_command(ctx, name) is None:
            paths = [" ".join(path) for path in _paths(ctx.find_root()) if path[-1] == name]
            if name in MEANT:
                ctx.fail(f"No such command {name!r}: {MEANT[name]}")
            if paths:
                ctx.fail(f"No such command {name!r}. Did you mean `{'` or `'.join(paths)}`?")
        return super().resolve_command(ctx, args)


def _paths(root: Any) -> Iterator[tuple[str, ...]]:  # noqa: ANN401 - a context of typer's click
    """Yield the words of each verb."""
    for name, verb in root.command.commands.items():
        yield (root.info_name, name)
        for below in getattr(verb, "commands", ()):
            yield (root.info_name, name, below)
