"""The command line: its verbs, their examples and their overview."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, TypeAlias

import typer

from eventproc.cli.arguments.grouped import takes_duration, with_groups
from eventproc.cli.terminal.headings import HeadedCommand
from eventproc.cli.terminal.mistyped import SuggestingGroup
from eventproc.cli.terminal.plain_help import PlainCommand
from eventproc.cli.verbs import checkpoints, dead_letters, store
from eventproc.cli.verbs.dashboard import dashboard
from eventproc.cli.verbs.demo import demo
from eventproc.cli.verbs.emulator import emulator
from eventproc.cli.verbs.hold import hold
from eventproc.cli.verbs.pauses import pause, resume
from eventproc.cli.verbs.run import run
from eventproc.cli.verbs.scale import scale
from eventproc.cli.verbs.simulate import simulate
from eventproc.cli.verbs.status import status
from eventproc.version import EVENTPROC_VERSION

EXAMPLES: Final = "Examples:"

DURATION_NOTE: Final = "A DURATION is a number with its unit: 500ms, 10s, 2m, 1.5h."

_WHERE: Final = (
    "who has partition 3, and how far behind    eventproc status",
    "what is paused, since when and why         eventproc status",
    "how long the oldest event has waited       eventproc checkpoints lag",
    "get the events since 08:00 again           eventproc checkpoints reset",
    "skip an event that cannot be handled       eventproc checkpoints reset",
    "deliver again what was given up            eventproc dead-letters replay",
    "move a group to another store              eventproc checkpoints export",
    "create a container, also for dead letters  eventproc store init",
    "health of a running process, for probes    eventproc run --http PORT",
    "show an event, delete a group              no verb: see docs/operations.md",
)


def _epilog(heading: str, lines: Sequence[str]) -> str:
    # The backspace keeps the lines from being joined into a paragraph.
    return f"\b\n{heading}\n" + "\n".join(f"  {line}" for line in lines)


app = typer.Typer(
    name="eventproc",
    add_completion=False,
    rich_markup_mode=None,
    # A traceback with the values of variables would show secrets.
    pretty_exceptions_enable=False,
    cls=SuggestingGroup,
    epilog=_epilog("Where to find it:", _WHERE),
)


@app.callback(invoke_without_command=True)
def eventproc(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Process partitioned event streams with a group of equal processes.

    `eventproc demo` shows a group at work, on this machine alone.

    To run your own handler, start `eventproc emulator` in one terminal and, in as many others as
    you like, `eventproc run orders:OrderHandler --eventhub orders --store sqlite:group.db`.

    In Azure, verbs take --namespace and --storage-account, to use an identity, or connection
    strings in the environment. `eventproc run --help` shows all of it.
    """
    if show_version:
        print(f"eventproc {EVENTPROC_VERSION}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


_Examples: TypeAlias = Mapping[Callable[..., int], Sequence[str]]

_VERBS: Final[_Examples] = {
    demo: ("eventproc demo", "eventproc demo --store sqlite --format json"),
    run: (
        "eventproc run orders:OrderHandler --eventhub orders --store sqlite:group.db",
        "eventproc run orders:OrderHandler --eventhub orders --store blob:checkpoints --workers 4",
        "eventproc run orders:OrderHandler --eventhub orders --store postgres:ORDERS_DSN",
    ),
    hold: (
        "eventproc hold keys:Key --resources key-1,key-2 --group keys --store sqlite:group.db",
        "eventproc hold sms:Link --resources-from sms:list_names --group sms --store blob:leases",
    ),
    status: (
        "eventproc status --eventhub orders --store sqlite:group.db --watch",
        "eventproc status --eventhub orders --store blob:checkpoints --partition 3 --format json",
        "eventproc status --resources keys --store sqlite:group.db",
    ),
    dashboard: (
        "eventproc dashboard --eventhub orders --store sqlite:group.db",
        "eventproc dashboard --eventhub orders --store blob:checkpoints --allow-changes",
    ),
    pause: (
        "eventproc pause --reason 'database moves' --eventhub orders --store sqlite:group.db",
        (
            "eventproc pause --partition 3 --reason 'INC-481' --eventhub orders "
            "--store blob:checkpoints"
        ),
    ),
    resume: (
        "eventproc resume --eventhub orders --store sqlite:group.db",
        "eventproc resume --partition 3 --eventhub orders --store blob:checkpoints",
    ),
    scale: (
        "eventproc scale --eventhub orders --store blob:checkpoints --max 20",
        "eventproc scale --eventhub orders --store blob:checkpoints --min 0 --grpc 0.0.0.0:6000",
    ),
    emulator: (
        "eventproc emulator --hub orders:8 --hub payments:4",
        "eventproc emulator --config Config.json --data ./hubs",
    ),
    simulate: (
        "eventproc simulate --partitions 32 --processors 4 --event join:1 --event crash:1",
        "eventproc simulate --partitions 256 --processors 32 --event roll:8 --format json",
        (
            "eventproc simulate --processors 1 --autoscale --load 100 --process-rate 150 "
            "--event load:1000 --event load:100"
        ),
    ),
}

_HEADED: Final = (run, hold)
"""Verbs with so many options that their help needs headings."""

_CHECKPOINT_VERBS: Final[_Examples] = {
    checkpoints.list_: ("eventproc checkpoints list --eventhub orders --store sqlite:group.db",),
    checkpoints.lag: ("eventproc checkpoints lag --eventhub orders --store sqlite:group.db",),
    checkpoints.reset: (
        "eventproc checkpoints reset --to -1000 --eventhub orders --store sqlite:group.db",
        (
            "eventproc checkpoints reset --to 2026-01-31T08:00:00Z --partition 3 --dry-run "
            "--eventhub orders --store blob:checkpoints"
        ),
        (
            "eventproc checkpoints reset --to +1 --partition 3 --keep-state --eventhub orders "
            "--store blob:checkpoints"
        ),
    ),
    checkpoints.set_: (
        (
            "eventproc checkpoints set --partition 3 --sequence-number 41 --offset 4100 "
            "--eventhub orders --store sqlite:group.db"
        ),
    ),
    checkpoints.export: (
        "eventproc checkpoints export orders.json --eventhub orders --store sqlite:group.db",
    ),
    checkpoints.import_: (
        "eventproc checkpoints import orders.json --eventhub orders --store blob:checkpoints",
    ),
}


_LETTER_VERBS: Final[_Examples] = {
    dead_letters.list_: (
        "eventproc dead-letters list blob:dead-letters",
        "eventproc dead-letters list blob:dead-letters --partition 3 --error ValueError",
    ),
    dead_letters.show: (
        "eventproc dead-letters show blob:dead-letters --partition 3 --since 2026-01-31T08:00:00Z",
    ),
    dead_letters.replay: (
        "eventproc dead-letters replay blob:dead-letters",
        "eventproc dead-letters replay blob:dead-letters --handler orders:OrderHandler",
        "eventproc dead-letters replay eventhub:dead --store sqlite:group.db --dry-run",
    ),
    dead_letters.drop: (
        "eventproc dead-letters drop blob:dead-letters --until 2026-01-31T08:00:00Z",
    ),
}

_STORE_VERBS: Final[_Examples] = {
    store.init: (
        "eventproc store init --store postgres:ORDERS_DSN",
        "eventproc store init --store blob:checkpoints",
        "eventproc store init --store blob:dead-letters",
    ),
    store.check: ("eventproc store check --store postgres:ORDERS_DSN",),
}


def _sentence(verb: Callable[..., object]) -> str:
    """The docstring's first sentence, in full: typer would shorten it in the overview."""
    return " ".join((verb.__doc__ or "").partition("\n\n")[0].split())


def _add_verbs(parent: typer.Typer, examples_by_verb: _Examples) -> None:
    for verb, examples in examples_by_verb.items():
        name = verb.__name__.rstrip("_").replace("_", "-")
        command = with_groups(verb)
        note = f"{DURATION_NOTE}\n\n" if takes_duration(command) else ""
        parent.command(
            name,
            cls=HeadedCommand if verb in _HEADED else PlainCommand,
            epilog=note + _epilog(EXAMPLES, examples),
            short_help=_sentence(verb),
        )(command)


_checkpoints_app = typer.Typer(
    name="checkpoints",
    epilog=_epilog(EXAMPLES, [examples[0] for examples in _CHECKPOINT_VERBS.values()]),
    cls=SuggestingGroup,
    rich_markup_mode=None,
)


@_checkpoints_app.callback(invoke_without_command=True)
def _checkpoints(context: typer.Context) -> None:
    """See checkpoints, lag and the oldest event; replay or skip events; copy to a new store."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


_letters_app = typer.Typer(
    name="dead-letters",
    epilog=_epilog(EXAMPLES, [examples[0] for examples in _LETTER_VERBS.values()]),
    cls=SuggestingGroup,
    rich_markup_mode=None,
)


@_letters_app.callback(invoke_without_command=True)
def _letters(context: typer.Context) -> None:
    """Show the events that were given up, deliver them again, or drop them."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


_store_app = typer.Typer(
    name="store",
    epilog=_epilog(EXAMPLES, [examples[0] for examples in _STORE_VERBS.values()]),
    cls=SuggestingGroup,
    rich_markup_mode=None,
)


@_store_app.callback(invoke_without_command=True)
def _store(context: typer.Context) -> None:
    """Create what a checkpoint store or a blob sink of dead letters needs, and check it.

    To move a group to another store, see `eventproc checkpoints export` and `import`.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


_add_verbs(app, _VERBS)
_add_verbs(_checkpoints_app, _CHECKPOINT_VERBS)
_add_verbs(_letters_app, _LETTER_VERBS)
_add_verbs(_store_app, _STORE_VERBS)
app.add_typer(_checkpoints_app, short_help=_sentence(_checkpoints))
app.add_typer(_letters_app, short_help=_sentence(_letters))
app.add_typer(_store_app, short_help=_sentence(_store))
