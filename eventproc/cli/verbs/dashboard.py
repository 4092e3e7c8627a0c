"""``eventproc dashboard``: a page that shows a group at work, and what is stuck."""

import asyncio
from datetime import timedelta
from typing import Annotated, Final

import typer

from eventproc.cli.arguments import options
from eventproc.cli.arguments.address import ShownAddress
from eventproc.cli.arguments.grouped import DEFAULTS
from eventproc.cli.group.connection import connect
from eventproc.cli.terminal.exits import OK
from eventproc.endpoints.address import parse_address
from eventproc.errors import ConfigurationError

EVERY_MIN: Final = timedelta(seconds=0.1)


def dashboard(
    *,
    address: ShownAddress,
    expiration: options.Expiration = DEFAULTS.ownership_expiration,
    http: Annotated[
        str,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Where to serve the page. Without HOST only this machine can open it.",
        ),
    ] = "127.0.0.1:8787",
    allow_host: Annotated[
        list[str],
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A host name under which browsers reach the page, for example that of a proxy. "
            "Repeat it for more. Requests for other names are refused.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer wants a list, and it is not changed
    every: Annotated[
        timedelta, typer.Option(help="The time between two readings, while a browser looks.")
    ] = timedelta(seconds=2),
    stuck_after: Annotated[
        timedelta,
        typer.Option(
            help="A partition with waiting events whose checkpoint does not move for so long is "
            "stuck. Give more than the time between two checkpoints."
        ),
    ] = timedelta(minutes=1),
    allow_changes: Annotated[
        bool,
        typer.Option(
            "--allow-changes",
            help="Let whoever opens the page with the printed URL move checkpoints, pause and "
            "resume.",
        ),
    ] = False,
    lookup_group: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="With --allow-changes: a consumer group without processors, through which single "
            "events are read, so that a reset does not interrupt the owner.",
            show_default=False,
        ),
    ] = "",
) -> int:
    """Open a page that shows who owns what over time, lag, rates, and what is stuck and why.

    It only reads, and shows groups of any Azure SDK, too. While no browser looks, nothing is read.
    It also asks the event hub, for lag and rates, unless --without-hub is given. With
    --allow-changes it prints a URL with a token; whoever has that may also move checkpoints, pause
    and resume.

    It runs until Ctrl+C or SIGTERM.

    Exit codes: 0 stopped by a signal, 2 an option is wrong, 3 the store did not answer.
    """
    if every < EVERY_MIN:
        raise ConfigurationError(f"--every is {every.total_seconds():g}s: give at least 0.1s")
    if stuck_after < EVERY_MIN:
        raise ConfigurationError(
            f"--stuck-after is {stuck_after.total_seconds():g}s: give at least 0.1s"
        )
    listen = parse_address(http, "--http")
    if listen.path:
        raise ConfigurationError(f"--http is {http!r}: a browser needs [HOST:]PORT")
    from eventproc.cli.dashboard.program import PageOptions, run_page  # noqa: PLC0415 - an extra

    wanted = PageOptions(
        listen=listen,
        host_names=frozenset(name.lower() for name in allow_host),
        expiration=expiration,
        every=every,
        stuck_after=stuck_after,
        allows_changes=allow_changes,
        lookup_group=lookup_group,
    )

    async def run() -> None:
        async with connect(address, hub_may_be_away=True) as connection:
            await run_page(connection, wanted)

    asyncio.run(run())
    return OK
