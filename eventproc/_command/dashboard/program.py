"""Runs the page of a group: reader, watcher and site, put together."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from eventproc._base.http.server import serve_requests
from eventproc._base.tasks import end
from eventproc._command.dashboard.changes import Changes, PendingChanges
from eventproc._command.dashboard.options import PageOptions
from eventproc._command.dashboard.reader import GroupReader
from eventproc._command.dashboard.site import Site
from eventproc._command.dashboard.watcher import Watcher
from eventproc._command.group.connection import Connection
from eventproc._command.terminal.ends import until_signal
from eventproc._command.terminal.exits import BAD_INPUT, exit_code_of
from eventproc._core.watching.causes import WatchRules
from eventproc.errors import ConfigurationError, EventProcError

CONNECTIONS_MAX: Final = 100
"""A browser keeps one open for as long as it shows the page."""

WILDCARDS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - named, not listened on


async def run_page(connection: Connection, options: PageOptions) -> None:
    """Serve the page until SIGINT or SIGTERM, and print its URL.

    Raises:
        ConfigurationError, EventProcError: As for ``open_page``.
    """
    async with open_page(connection, options) as (url, watching):
        print(url, flush=True)
        await until_signal(watching)


@asynccontextmanager
async def open_page(
    connection: Connection, options: PageOptions
) -> AsyncIterator[tuple[str, "asyncio.Task[None]"]]:
    """Serve the page within the block; yield its URL, and the task that reads the group for it.

    Raises:
        ConfigurationError: The address cannot be listened on, or the group has nothing to change.
        EventProcError: The first reading shows that an option is wrong.
    """
    changes = None
    if options.allow_changes:
        if connection.group.is_of_resources:
            raise ConfigurationError(
                "--allow-changes: a group of resources has no checkpoints to move"
            )
        connection.refuse_queues()
        changes = PendingChanges(
            Changes(
                connection=connection,
                expiration=options.expiration,
                lookup_group=options.lookup_group,
            )
        )
    names = {name.lower() for name in (options.listen.host, *options.allow_host)} - WILDCARDS
    watcher = await _watcher(connection, options)
    site = Site(watcher=watcher, about=_about(connection, options), names=names, changes=changes)
    async with serve_requests(
        options.listen, site.respond, "--http", connections_max=CONNECTIONS_MAX
    ) as bound:
        host = f"localhost:{bound.port}" if bound.host in WILDCARDS else str(bound)
        watching = asyncio.create_task(watcher.run())
        try:
            yield f"http://{host}/{f'#token={changes.token}' if changes else ''}", watching
        finally:
            await end([watching])


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
