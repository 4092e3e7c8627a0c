"""Runs the page of a group: reader, watcher and site, put together."""

import asyncio
import secrets
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from eventproc.cli.dashboard.changes import Changes, PendingChanges
from eventproc.cli.dashboard.reader import GroupReader
from eventproc.cli.dashboard.site import Site
from eventproc.cli.dashboard.watcher import Watcher
from eventproc.cli.group.connection import Connection
from eventproc.cli.terminal.exits import BAD_INPUT, exit_code_of
from eventproc.concurrency.tasks import end
from eventproc.core.watching.finding import WatchRules
from eventproc.endpoints.address import ListenAddress
from eventproc.endpoints.server import serve_requests
from eventproc.errors import ConfigurationError, EventProcError

CONNECTIONS_MAX: Final = 100
"""A browser keeps one open for as long as it shows the page."""

WILDCARDS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - named, not listened on


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """What an operator asks of the page."""

    listen: ListenAddress
    host_names: frozenset[str]
    """Under which browsers reach it, beside the address."""

    expiration: timedelta
    every: timedelta
    stuck_after: timedelta
    allows_changes: bool
    lookup_group: str


async def run_page(connection: Connection, options: PageOptions) -> None:
    """Serve the page until SIGINT or SIGTERM, and print its URL.

    Raises:
        ConfigurationError, EventProcError: As for ``open_page``.
    """
    async with open_page(connection, options) as (url, watching):
        print(url, flush=True)
        await _until_stopped(watching)


@asynccontextmanager
async def open_page(
    connection: Connection, options: PageOptions
) -> AsyncIterator[tuple[str, "asyncio.Task[None]"]]:
    """Serve the page within the block; yield its URL, and the task that reads the group for it.

    Raises:
        ConfigurationError: The address cannot be listened on, or the group has nothing to change.
        EventProcError: The first reading shows that an option is wrong.
    """
    token, changes = None, None
    if options.allows_changes:
        if connection.group.is_of_resources:
            raise ConfigurationError(
                "--allow-changes: a group of resources has no checkpoints to move"
            )
        connection.refuse_queues()
        token = secrets.token_urlsafe(24)
        changes = PendingChanges(
            Changes(
                connection=connection,
                expiration=options.expiration,
                lookup_group=options.lookup_group,
            )
        )
    names = {options.listen.host.lower(), *options.host_names} - WILDCARDS
    watcher = await _watcher(connection, options)
    site = Site(
        watcher=watcher,
        about=_about(connection, options),
        names=names,
        token=token,
        changes=changes,
    )
    async with serve_requests(
        options.listen, site.respond, "--http", connections_max=CONNECTIONS_MAX
    ) as bound:
        host = f"localhost:{bound.port}" if bound.host in WILDCARDS else str(bound)
        watching = asyncio.create_task(watcher.run())
        try:
            yield f"http://{host}/{f'#token={token}' if token else ''}", watching
        finally:
            await end([watching])


async def _until_stopped(watching: "asyncio.Task[None]") -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # On Windows Ctrl+C interrupts.
            loop.add_signal_handler(number, ended.set)
    stopping = asyncio.create_task(ended.wait())
    done, _ = await asyncio.wait([stopping, watching], return_when=asyncio.FIRST_COMPLETED)
    await end([stopping])
    for task in done:
        task.result()


async def _watcher(connection: Connection, options: PageOptions) -> Watcher:
    """Return what reads the group, after one reading, which shows whether that is possible."""
    reader = GroupReader(connection, expiration=options.expiration, clock=time.monotonic)
    try:
        await reader.read(())
        if reader.hub_failure is not None:
            raise reader.hub_failure
    except EventProcError as error:
        # What a retry cannot heal ends it now. An outage is shown on the page.
        if exit_code_of(error) == BAD_INPUT:
            raise
    rules = WatchRules(
        expiration_s=options.expiration.total_seconds(),
        stuck_after_s=options.stuck_after.total_seconds(),
    )
    return Watcher(
        reader.read,
        rules,
        every=options.every,
        hub_failure=lambda: reader.hub_failure,
        clock=time.monotonic,
    )


def _about(connection: Connection, options: PageOptions) -> dict[str, Any]:
    """Return what the page says of the group before it is read; times in seconds."""
    group = connection.group
    has_names = group.is_of_resources
    return {
        "title": group.name if has_names else group.eventhub_name,
        "subtitle": "group of resources" if has_names else group.name,
        "namespace": "" if has_names else group.fully_qualified_namespace,
        "noun": "resource" if has_names else "partition",
        "asks_hub": connection.source is not None,
        "every": options.every.total_seconds(),
        "expiration": options.expiration.total_seconds(),
        "stuck_after": options.stuck_after.total_seconds(),
    }
