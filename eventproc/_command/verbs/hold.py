"""``eventproc hold``: hold some of a group's named resources, or one, with the user's handler."""

from datetime import timedelta
from typing import Annotated

import typer

from eventproc._command.arguments.address import StoreAddress
from eventproc._command.arguments.config_options import RESOURCES
from eventproc._command.arguments.grouped import ConfigOptions
from eventproc._command.arguments.modules import load_function, load_resource_handler, make_roster
from eventproc._command.terminal.exits import OK
from eventproc._command.workers.process import ProcessOptions
from eventproc._group.resources.config import ResourceProcessorConfig
from eventproc._group.resources.names import Resources
from eventproc._runtime.processors import ResourceProcessor
from eventproc.errors import ConfigurationError


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
    process: ProcessOptions,
    config: Annotated[ResourceProcessorConfig, ConfigOptions(RESOURCES, ResourceProcessorConfig())],
) -> int:
    """Hold some of a group's resources, or its only one: connections, licence keys, jobs, tenants.

    A resource is anything with a name that one process at a time should hold. With one name, such
    as --resources nightly-job, one process holds it and the others stand by.

    Start any number of processes, on any machines: those with the same group and store share the
    resources, and each resource has one holder. SIGTERM or Ctrl+C stops a process gracefully: its
    handlers are drained, and other processes take the resources over. A second signal ends it at
    once.

    Give --storage-account to use the identity of this process. Or give secrets in the environment:
    EVENTPROC_STORAGE_CONNECTION_STRING for --store blob:CONTAINER and tables:TABLE; for --store
    postgres:NAME it is the variable NAME.

    Exit codes: 0 stopped gracefully, 1 failed, 2 an option, the handler or a credential cannot
    work, 3 the store did not answer at the start.
    """
    code = process.supervise(config)
    if code is not None:
        return code
    processor = ResourceProcessor(
        resources=_resources(resources, resources_from, every),
        store=address.checkpoint_store(creates=create_container),
        group=group,
        handler=load_resource_handler(handler),
        owner_id=process.owner_id or None,
        roster=make_roster(process.roster),
        health=process.reporter(),
        config=config,
    )
    process.prepare()
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
