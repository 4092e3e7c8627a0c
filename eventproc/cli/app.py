"""The command's verbs, put together."""

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Final

import typer

from eventproc.cli.demo.verb import demo
from eventproc.cli.emulator import emulator
from eventproc.cli.run import run
from eventproc.cli.simulate import simulate
from eventproc.cli.status import status

app = typer.Typer(
    name="eventproc",
    add_completion=False,
    rich_markup_mode=None,
    # A traceback with the values of variables would show secrets.
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def eventproc(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version, and end.", is_eager=True)
    ] = False,
) -> None:
    """Process partitioned event streams with a fleet of equal processes.

    New here? `eventproc demo` shows a fleet at work, on this machine alone.

    Then: `eventproc emulator` in one terminal, and in as many others as you like
    `eventproc run orders:OrderHandler --eventhub orders --store sqlite:group.db`.
    """
    if show_version:
        print(f"eventproc {_version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


def _version() -> str:
    try:
        return version("eventproc")
    except PackageNotFoundError:
        return "(from a folder, not installed)"


_EXAMPLES: Final[dict[Callable[..., int], tuple[str, ...]]] = {
    demo: ("eventproc demo", "eventproc demo --store sqlite --format json"),
    run: (
        "eventproc run orders:OrderHandler --eventhub orders --store sqlite:group.db",
        "eventproc run orders:OrderHandler --eventhub orders --store blob:checkpoints",
    ),
    status: (
        "eventproc status --eventhub orders --store sqlite:group.db --watch",
        "eventproc status --eventhub orders --store blob:checkpoints --format json",
    ),
    emulator: (
        "eventproc emulator --hub orders:8 --hub payments:4",
        "eventproc emulator --config Config.json --data ./hubs",
    ),
    simulate: (
        "eventproc simulate --partitions 32 --processors 4 --event join:1 --event crash:1",
        "eventproc simulate --partitions 256 --processors 32 --event roll:8 --format json",
    ),
}

for _verb, _examples in _EXAMPLES.items():
    # The backspace keeps the lines from being joined into a paragraph.
    app.command(epilog="\b\nExamples:\n" + "\n".join(f"  {line}" for line in _examples))(_verb)
