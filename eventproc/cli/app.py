"""The command's verbs, put together."""

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Final

import typer

from eventproc.cli.checkpoints import verb as checkpoints
from eventproc.cli.demo.verb import demo
from eventproc.cli.demo_spark.verb import demo_spark
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
    demo_spark: ("eventproc demo-spark", "eventproc demo-spark --events 20000 --format json"),
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

_CHECKPOINT_EXAMPLES: Final[dict[str, tuple[Callable[..., int], tuple[str, ...]]]] = {
    "list": (
        checkpoints.list_,
        ("eventproc checkpoints list --eventhub orders --store sqlite:group.db",),
    ),
    "lag": (
        checkpoints.lag,
        ("eventproc checkpoints lag --eventhub orders --store sqlite:group.db",),
    ),
    "reset": (
        checkpoints.reset,
        (
            "eventproc checkpoints reset --to -1000 --eventhub orders --store sqlite:group.db",
            "eventproc checkpoints reset --to 2026-01-31T08:00:00Z --partition 3 --dry-run ...",
        ),
    ),
    "set": (
        checkpoints.set_,
        ("eventproc checkpoints set --partition 3 --sequence-number 41 --offset 4100 ...",),
    ),
    "export": (
        checkpoints.export,
        ("eventproc checkpoints export orders.json --eventhub orders --store sqlite:group.db",),
    ),
    "import": (
        checkpoints.import_,
        ("eventproc checkpoints import orders.json --eventhub orders --store blob:checkpoints",),
    ),
}


def _epilog(examples: Sequence[str]) -> str:
    # The backspace keeps the lines from being joined into a paragraph.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)


for _verb, _examples in _EXAMPLES.items():
    app.command(epilog=_epilog(_examples))(_verb)

_positions = typer.Typer(
    name="checkpoints",
    epilog=_epilog([examples[0] for _, examples in _CHECKPOINT_EXAMPLES.values()]),
    rich_markup_mode=None,
)


@_positions.callback(invoke_without_command=True)
def _checkpoints(context: typer.Context) -> None:
    """Look at a group's checkpoints, move them, take them to another store or group."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


for _name, (_verb, _examples) in _CHECKPOINT_EXAMPLES.items():
    _positions.command(_name, epilog=_epilog(_examples))(_verb)
app.add_typer(_positions)
