"""The command line: its verbs, their examples and their overview.

The module of a verb is imported when the verb is used: all of them take most of a second.
"""

# ruff: noqa: ANN401 - typer has a click of its own, without public types

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, Final, TypeAlias

import typer
from typer.core import TyperGroup

from eventproc._base.extras import needing
from eventproc._base.version import __version__
from eventproc._command.terminal.help import HeadedCommand, PlainCommand

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
    "does Azure do what is assumed of it        eventproc verify",
    "show an event, delete a group              no verb: see docs/operations.md",
)


class Verb:
    """A verb of the command, which is imported when it is used."""

    def __init__(
        self, path: str, *examples: str, summary: str = "", has_headings: bool = False
    ) -> None:
        """Give a verb its function and its examples.

        Args:
            path: ``module:function``, the module below ``verbs``.
            *examples: Command lines.
            summary: The first sentence of the function's docstring, for an overview that does not
                import it.
            has_headings: Whether it has so many options that its help needs headings.
        """
        self._path = path
        self.examples = examples
        self._summary = summary
        self._has_headings = has_headings

    @property
    def summary(self) -> str:
        """The first sentence of its help, in full: typer would shorten it in the overview."""
        return self._summary or " ".join((self._load().__doc__ or "").partition("\n\n")[0].split())

    def command(self, name: str) -> Any:
        """Make the command."""
        with needing("cli"):
            from eventproc._command.arguments.grouped import takes_duration, with_groups  # noqa: PLC0415

            command = with_groups(self._load())
        note = f"{DURATION_NOTE}\n\n" if takes_duration(command) else ""
        return _command(
            command,
            name,
            cls=HeadedCommand if self._has_headings else PlainCommand,
            epilog=note + _epilog("Examples:", self.examples),
        )

    def _load(self) -> Any:
        module, _, function = self._path.partition(":")
        return getattr(import_module(f"eventproc._command.verbs.{module}"), function)


_Verbs: TypeAlias = "Mapping[str, Verb | VerbGroup]"


class VerbGroup(TyperGroup):
    """Verbs below one word; without a verb its help is shown."""

    def __init__(
        self, name: str, about: str, *, verbs: "_Verbs", epilog: str = "", params: Any = ()
    ) -> None:
        """Without an *epilog*, show the first example of each verb."""
        examples = [verb.examples[0] for verb in verbs.values() if isinstance(verb, Verb)]
        super().__init__(
            name=name,
            help=about,
            epilog=epilog or _epilog("Examples:", examples),
            params=list(params),
            rich_markup_mode=None,
        )
        self.verbs = verbs

    @property
    def summary(self) -> str:
        """The first sentence of its help."""
        return str(self.help).partition("\n\n")[0]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take a command line without a verb as one that asks for help."""
        return super().parse_args(ctx, args or ["--help"])

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - of typer
        """Return the names of the verbs."""
        return list(self.verbs)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - of typer
        """Import a verb; return ``None`` if there is none of this name."""
        verb = self.verbs.get(cmd_name)
        return verb.command(cmd_name) if isinstance(verb, Verb) else verb

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - of typer
        """Write the overview of the verbs."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.summary) for name, verb in self.verbs.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb of a command line.

        The error for an unknown one names those of a similar name, wherever they are.
        """
        name = args[0]
        if name not in self.verbs:
            root = ctx.find_root()
            paths = list(root.command.paths(root.info_name))
            close = get_close_matches(name, {path[-1] for path in paths})
            if meant := [f"`{' '.join(path)}`" for path in paths if path[-1] in close[:1]]:
                ctx.fail(f"No such command {name!r}. Did you mean {' or '.join(meant)}?")
        return super().resolve_command(ctx, args)

    def paths(self, *above: str) -> Iterator[tuple[str, ...]]:
        """Yield the words of each verb, those of a group before those below it."""
        for name, verb in self.verbs.items():
            yield (*above, name)
            if isinstance(verb, VerbGroup):
                yield from verb.paths(*above, name)


def _command(function: Callable[..., object], name: str, **settings: Any) -> Any:
    # A traceback with the values of variables would show secrets.
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    alone.command(name, **settings)(function)
    return typer.main.get_command(alone)


def _epilog(heading: str, lines: Sequence[str]) -> str:
    # The backspace keeps the lines from being joined into a paragraph.
    return f"\b\n{heading}\n" + "\n".join(f"  {line}" for line in lines)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"eventproc {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Take the options before the verb."""


_FILE: Final = "--eventhub orders --store sqlite:group.db"
_BLOB: Final = "--eventhub orders --store blob:checkpoints"
_RUN: Final = "eventproc run orders:OrderHandler --eventhub orders --store"

_CHECKPOINTS: Final = VerbGroup(
    "checkpoints",
    "See checkpoints, lag and the oldest event; replay or skip events; copy to a new store.",
    verbs={
        "list": Verb("checkpoints:list_", f"eventproc checkpoints list {_FILE}"),
        "lag": Verb("checkpoints:lag", f"eventproc checkpoints lag {_FILE}"),
        "reset": Verb(
            "checkpoints:reset",
            f"eventproc checkpoints reset --to -1000 {_FILE}",
            "eventproc checkpoints reset --to 2026-01-31T08:00:00Z --partition 3 --dry-run "
            f"{_BLOB}",
            f"eventproc checkpoints reset --to +1 --partition 3 --keep-state {_BLOB}",
        ),
        "set": Verb(
            "checkpoints:set_",
            "eventproc checkpoints set --partition 3 --sequence-number 41 --offset 4100 " + _FILE,
        ),
        "export": Verb(
            "checkpoints:export",
            f"eventproc checkpoints export orders.json {_FILE}",
            f"eventproc checkpoints export --to azure-sdk:app --dry-run {_BLOB}",
        ),
        "import": Verb(
            "checkpoints:import_",
            f"eventproc checkpoints import orders.json {_BLOB}",
            "eventproc checkpoints import --from functions:azure-webjobs-eventhub --dry-run "
            f"{_BLOB}",
        ),
    },
)

_DEAD_LETTERS: Final = VerbGroup(
    "dead-letters",
    "Show the events that were given up, deliver them again, or drop them.",
    verbs={
        "list": Verb(
            "dead_letters:list_",
            "eventproc dead-letters list blob:dead-letters",
            "eventproc dead-letters list blob:dead-letters --partition 3 --error ValueError",
        ),
        "show": Verb(
            "dead_letters:show",
            "eventproc dead-letters show blob:dead-letters --partition 3 --since "
            "2026-01-31T08:00:00Z",
        ),
        "replay": Verb(
            "dead_letters:replay",
            "eventproc dead-letters replay blob:dead-letters",
            "eventproc dead-letters replay blob:dead-letters --handler orders:OrderHandler",
            "eventproc dead-letters replay eventhub:dead --store sqlite:group.db --dry-run",
        ),
        "drop": Verb(
            "dead_letters:drop",
            "eventproc dead-letters drop blob:dead-letters --until 2026-01-31T08:00:00Z",
        ),
    },
)

_STORE: Final = VerbGroup(
    "store",
    "Create what a checkpoint store or a blob sink of dead letters needs, and check it.\n\n"
    "To move a group to another store, see `eventproc checkpoints export` and `import`.",
    verbs={
        "init": Verb(
            "store:init",
            "eventproc store init --store postgres:ORDERS_DSN",
            "eventproc store init --store blob:checkpoints",
            "eventproc store init --store blob:dead-letters",
        ),
        "check": Verb("store:check", "eventproc store check --store postgres:ORDERS_DSN"),
    },
)

_VERBS: Final[_Verbs] = {
    "demo": Verb(
        "demo:demo",
        "eventproc demo",
        "eventproc demo --store sqlite --format json",
        summary="See a group of processes share the work, lose a process, and lose no event.",
    ),
    "run": Verb(
        "run:run",
        f"{_RUN} sqlite:group.db",
        f"{_RUN} blob:checkpoints --workers 4",
        f"{_RUN} postgres:ORDERS_DSN",
        has_headings=True,
        summary="Run your handler on a share of an event hub's partitions: on several cores, with "
        "probes.",
    ),
    "hold": Verb(
        "hold:hold",
        "eventproc hold keys:Key --resources key-1,key-2 --group keys --store sqlite:group.db",
        "eventproc hold sms:Link --resources-from sms:list_names --group sms --store blob:leases",
        has_headings=True,
        summary="Hold some of a group's resources, or its only one: connections, licence keys, "
        "jobs, tenants.",
    ),
    "status": Verb(
        "status:status",
        f"eventproc status {_FILE} --watch",
        f"eventproc status {_BLOB} --partition 3 --format json",
        "eventproc status --resources keys --store sqlite:group.db",
        summary="Show a group: owner, checkpoint, lag of each partition, pauses, members, resource "
        "holders.",
    ),
    "dashboard": Verb(
        "dashboard:dashboard",
        f"eventproc dashboard {_FILE}",
        f"eventproc dashboard {_BLOB} --allow-changes",
        summary="Open a page that shows who owns what over time, lag, rates, and what is stuck and "
        "why.",
    ),
    "pause": Verb(
        "pauses:pause",
        f"eventproc pause --reason 'database moves' {_FILE}",
        f"eventproc pause --partition 3 --reason 'INC-481' {_BLOB}",
        summary="Pause a group or some of its partitions: they stay owned, and nothing is "
        "received.",
    ),
    "resume": Verb(
        "pauses:resume",
        f"eventproc resume {_FILE}",
        f"eventproc resume --partition 3 {_BLOB}",
        summary="Resume a group after `eventproc pause`, or only some of its partitions.",
    ),
    "scale": Verb(
        "scale:scale",
        f"eventproc scale {_BLOB} --max 20",
        f"eventproc scale {_BLOB} --min 0 --grpc 0.0.0.0:6000",
        summary="Say how many processes a group needs, by its backlog and its rates; also to KEDA.",
    ),
    "verify": Verb(
        "verify:verify",
        "eventproc verify --eventhub verify --store blob:verify",
        "eventproc verify --namespace contoso.servicebus.windows.net --eventhub verify "
        "--storage-account contoso --store blob:verify",
        summary="Check that Event Hubs and Blob Storage do what eventproc assumes, on a hub of "
        "your own.",
    ),
    "emulator": Verb(
        "emulator:emulator",
        "eventproc emulator --hub orders:8 --hub payments:4",
        "eventproc emulator --config Config.json --data ./hubs",
        summary="Serve event hubs on this machine, to develop without Azure, for clients of any "
        "Azure SDK.",
    ),
    "simulate": Verb(
        "simulate:simulate",
        "eventproc simulate --partitions 32 --processors 4 --event join:1 --event crash:1",
        "eventproc simulate --partitions 256 --processors 32 --event roll:8 --format json",
        (
            "eventproc simulate --processors 1 --autoscale --load 100 --process-rate 150 --event "
            "load:1000 --event load:100"
        ),
        summary="Simulate a group, or its scaling: time to balance, moves, storage operations, "
        "monthly price.",
    ),
    "rehearse": Verb(
        "rehearse:rehearse",
        "eventproc rehearse shop:Orders --ledger shop:charge --promise exactly-once",
        "eventproc rehearse shop:Orders --fakes shop_fakes:FAKES --promise state --seeds 1000",
        summary="Rehearse your handler: crashes, steals, freezes and outages on virtual time, "
        "drawn by seed.",
    ),
    "checkpoints": _CHECKPOINTS,
    "dead-letters": _DEAD_LETTERS,
    "store": _STORE,
}

app: Final = VerbGroup(
    "eventproc",
    """Process partitioned event streams with a group of equal processes.

    `eventproc demo` shows a group at work, on this machine alone.

    To run your own handler, start `eventproc emulator` in one terminal and, in as many others as
    you like, `eventproc run orders:OrderHandler --eventhub orders --store sqlite:group.db`.

    In Azure, verbs take --namespace and --storage-account, to use an identity, or connection
    strings in the environment. `eventproc run --help` shows all of it.
    """,
    verbs=_VERBS,
    params=_command(_options, "eventproc").params,
    epilog=_epilog("Where to find it:", _WHERE),
)
