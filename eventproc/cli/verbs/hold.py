"""``eventproc hold``: hold a share of a group's named resources, with the user's handler."""

from datetime import timedelta
from typing import Annotated

import typer

from eventproc.cli.arguments.address import StoreAddress
from eventproc.cli.arguments.grouped import ConfigOptions
from eventproc.cli.arguments.handlers import load_function, load_resource_handler
from eventproc.cli.arguments.options import Http, StopAtEof, Workers, make_health
from eventproc.cli.arguments.rosters import RosterOption, check_supervised, make_roster
from eventproc.cli.arguments.settings import RESOURCES
from eventproc.cli.terminal.end_of_input import stop_at_end_of_input
from eventproc.cli.terminal.exits import OK
from eventproc.cli.terminal.log_lines import LogFormat, LogLevel, log_to_stderr
from eventproc.cli.workers.supervisor import supervise
from eventproc.config import ResourceProcessorConfig
from eventproc.errors import ConfigurationError
from eventproc.processor import ResourceProcessor
from eventproc.resources import Resources
from eventproc.runtime.descriptors import raise_soft_limit


def hold(
    *,
    handler: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:CLASS",
            help="Your handler: keys:Key is the class Key in keys.py, in this folder or in an "
            "installed package.",
        ),
    ],
    address: StoreAddress,
    group: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_RESOURCE_GROUP",
            metavar="NAME",
            help="The group. Processes of one group share its resources.",
        ),
    ],
    resources: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME",
            help="The names of the resources, with commas. For names that contain a comma, use "
            "--resources-from.",
        ),
    ] = "",
    resources_from: Annotated[
        str,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="A coroutine function that lists the names, instead of --resources.",
        ),
    ] = "",
    every: Annotated[
        timedelta, typer.Option(help="With --resources-from: the time between two calls.")
    ] = timedelta(seconds=30),
    create_container: Annotated[
        bool,
        typer.Option(
            "--create-container",
            help="Create the blob container, the Azure table, or the tables in PostgreSQL, if they "
            "do not exist.",
        ),
    ] = False,
    owner_id: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_OWNER_ID",
            metavar="NAME",
            help="The name of this process in the group. Give one that stays the same over "
            "restarts, such as the name of a pod. By default a new one is generated.",
        ),
    ] = "",
    roster: RosterOption = "",
    config: Annotated[ResourceProcessorConfig, ConfigOptions(RESOURCES, ResourceProcessorConfig())],
    log_format: Annotated[
        LogFormat,
        typer.Option(help="The format of log lines. auto: text on a terminal, JSON otherwise."),
    ] = LogFormat.AUTO,
    log_level: Annotated[
        LogLevel, typer.Option(help="The lowest level that is logged to standard error.")
    ] = LogLevel.INFO,
    http: Http = "",
    workers: Workers = 0,
    stop_at_eof: StopAtEof = False,
) -> int:
    """Hold a share of named resources: connections, licence keys, jobs, tenants.

    Start any number of processes, on any machines: those with the same group and store share the
    resources, and each resource has one holder. SIGTERM or Ctrl+C stops a process gracefully: its
    handlers are drained, and other processes take the resources over. A second signal ends it at
    once.

    Give secrets in the environment: EVENTPROC_STORAGE_CONNECTION_STRING for --store blob:CONTAINER
    and tables:TABLE, NAME for --store postgres:NAME.

    Exit codes: 0 stopped gracefully, 1 failed, 2 an option is wrong, 3 the store did not answer at
    the start.
    """
    if stop_at_eof:
        stop_at_end_of_input()
    if workers:
        check_supervised(roster)
        return supervise(
            workers,
            owner_id=owner_id,
            config=config,
            log_format=log_format,
            log_level=log_level,
            http=http,
        )
    processor = ResourceProcessor(
        resources=_resources(resources, resources_from, every),
        store=address.checkpoint_store(creates=create_container),
        group=group,
        handler=load_resource_handler(handler),
        owner_id=owner_id or None,
        roster=make_roster(roster),
        health=make_health(http),
        config=config,
    )
    log_to_stderr(log_format, log_level)
    raise_soft_limit()
    processor.run()
    return OK


def _resources(names: str, function: str, every: timedelta) -> Resources:
    if bool(names) is bool(function):
        raise ConfigurationError(
            "which resources? Give either --resources, with their names, or --resources-from, with "
            "a coroutine function that lists them"
        )
    if function:
        return Resources(load_function(function), every=every)
    return Resources([name.strip() for name in names.split(",")])
